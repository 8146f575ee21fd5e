.DEFAULT_GOAL := help
.PHONY: help setup serve test chaos lint types fast format bench demo-voice evaluate generated lock clean

run := .venv/bin/
fast := not engine and not serve and not chaos

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install the pinned dependencies into .venv (at once where that is done already)
	@requirements/setup

serve: setup ## serve the default model as serve_config.yaml says
	@exec $(run)speechlm serve serve_config.yaml

test: lint types ## lint, types and every test but those of chaos
	@requirements/setup kubernetes
	@requirements/debian
	$(run)pytest -m '$(fast)' -n 2
	$(run)pytest -m 'not ($(fast)) and not chaos' -n 2 --dist loadscope

chaos: setup ## the tests that need minutes and gigabytes: kills, redeploys, floods, a soak (SOAK_SECONDS)
	@requirements/setup kubernetes
	@requirements/debian
	$(run)pytest -m chaos

lint: setup ## ruff: rules and format
	$(run)ruff check
	$(run)ruff format --check

types: setup ## mypy
	$(run)mypy

fast: setup ## the tests that start neither an engine nor Ray Serve
	@requirements/setup kubernetes
	$(run)pytest -m '$(fast)' -n 2

format: setup ## mend what ruff can
	$(run)ruff check --fix
	$(run)ruff format

bench: setup ## measure everything and write docs/benchmarks.md (args=--profile full: all of it)
	$(run)python -m bench $(args)

demo-voice: ## train the demonstration voice anew (hours; goes on where it was; args: see demo_voice)
	@requirements/setup demo-voice
	@requirements/debian
	$(run)python -m demo_voice make $(args)

evaluate: ## measure the demonstration voice of a running service (args=--url URL)
	@requirements/setup demo-voice
	@requirements/debian
	$(run)python -m demo_voice evaluate $(args)

generated: setup ## the generated files: chart schema and dashboards, pages of metrics and settings, licences
	@requirements/setup kubernetes
	@requirements/setup demo-voice
	$(run)python -m k8s.builder
	$(run)python -m deployments.metrics.page > docs/metrics.md
	$(run)python -m deployments.settings_page > docs/settings.md
	$(run)python requirements/licences

lock: setup ## choose the pins anew from pyproject.toml (args=--upgrade: newer releases)
	requirements/lock $(args)

clean: ## remove .venv, the built models and every cache
	rm -rf .venv .cache build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
