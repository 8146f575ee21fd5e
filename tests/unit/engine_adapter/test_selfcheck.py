"""The check of the installed vLLM passes, and names what does not fit."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest

from engine_adapter import selfcheck
from engine_adapter.selfcheck import (
    ATTRIBUTES,
    HOOKS,
    VLLM_VERSION,
    Attribute,
    Hook,
    VllmMismatch,
    check_vllm,
    installed_version,
)

SCHEDULER = "vllm.v1.core.sched.scheduler"


def test_the_pinned_vllm_fits() -> None:
    check_vllm()
    assert installed_version() == VLLM_VERSION


def test_every_hook_and_attribute_is_listed_once() -> None:
    assert len(set(HOOKS)) == len(HOOKS)
    assert len(set(ATTRIBUTES)) == len(ATTRIBUTES)


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        (Hook(SCHEDULER, "Scheduler", "plan"), f"{SCHEDULER}.Scheduler.plan is gone"),
        (Hook(SCHEDULER, "Planner", "schedule"), f"{SCHEDULER}.Planner.schedule is gone"),
        (Hook("vllm.v1.nowhere", "", "run"), "vllm.v1.nowhere.run is gone"),
        (Hook("vllm.model_executor.models.utils", "", "run"), "models.utils.run is gone"),
        (
            Hook(SCHEDULER, "Scheduler", "add_request", ("request", "urgency", "owner")),
            f"{SCHEDULER}.Scheduler.add_request lacks urgency, owner",
        ),
    ],
)
def test_a_missing_or_changed_hook_is_named(hook: Hook, told: str) -> None:
    with pytest.raises(VllmMismatch) as error:
        check_vllm(hooks=(*HOOKS, hook))
    assert told in str(error.value)
    assert "requirements/" in str(error.value)


@pytest.mark.parametrize(
    "attribute",
    [
        Attribute(SCHEDULER, "Scheduler", "sprinting"),
        Attribute(SCHEDULER, "Planner", "running"),
        Attribute("vllm.v1.nowhere", "Scheduler", "running"),
        Attribute("vllm.v1.worker.cpu_worker", "", "CPURunner"),
        Attribute("vllm.v1.worker.cpu_worker", "", "CPUModelRunnerV2"),  # only within a function
    ],
)
def test_a_missing_attribute_is_named(attribute: Attribute) -> None:
    with pytest.raises(VllmMismatch) as error:
        check_vllm(attributes=(attribute,))
    where = ".".join(filter(None, (attribute.module, attribute.owner, attribute.name)))
    assert f"{where} is gone" in str(error.value)


def test_all_problems_are_told_at_once() -> None:
    hooks = (Hook(SCHEDULER, "Scheduler", "plan"), Hook(SCHEDULER, "Scheduler", "replan"))
    with pytest.raises(VllmMismatch, match=r"Scheduler\.plan is gone; .*Scheduler\.replan is gone"):
        check_vllm(hooks=hooks)


def test_a_name_that_a_module_imports_is_there() -> None:
    check_vllm(attributes=(Attribute("vllm.v1.worker.cpu_worker", "", "CPUModelRunner"),))


@pytest.mark.parametrize("module", ["cfg_pairing/scheduler.py", "engine_adapter/runner.py"])
def test_whatever_is_called_of_a_class_that_is_extended_is_listed(module: str) -> None:
    source = (Path(__file__).parents[3] / module).read_text()
    called = {name for name in re.findall(r"super\(\)\.(\w+)\(", source) if name != "__init__"}
    called |= set(re.findall(r"self\.(get_model|_preempt_request)\(", source))
    called |= set(re.findall(r"\.(peek_request|append_output_token_ids)\(", source))
    assert called
    assert called <= {hook.name for hook in HOOKS}


def test_an_attribute_of_something_else_does_not_count() -> None:
    """The scheduler sets ``request.num_computed_tokens``; it has no such attribute itself."""
    with pytest.raises(VllmMismatch):
        check_vllm(attributes=(Attribute(SCHEDULER, "Scheduler", "num_computed_tokens"),))


def test_another_release_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "installed_version", lambda: "0.31.1")
    with pytest.raises(VllmMismatch, match=f"vLLM {VLLM_VERSION}, found 0.31.1"):
        check_vllm()


def test_a_local_version_suffix_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{VLLM_VERSION}+cu130")
    check_vllm()


def test_no_vllm_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(VllmMismatch, match="vLLM is not installed"):
        check_vllm()
