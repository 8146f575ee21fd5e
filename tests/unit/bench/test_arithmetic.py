"""Operations and bytes of a step, counted another way."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel, DynamicCache

from bench.arithmetic import StepModel
from bench.devices import Peak, data_sheet, measured_peak, milliseconds
from engine_adapter.checkpoint import ModelDirectory
from engine_adapter.tiny import make_tiny


def test_operations_are_those_that_torch_counts(tmp_path: Path) -> None:
    files = ModelDirectory.open(make_tiny("demo", tmp_path / "model"))
    config = {k: v for k, v in files.config.items() if k not in ("model_type", "dtype")}
    body = AutoModel.from_config(
        AutoConfig.for_model(files.config["model_type"], **config), attn_implementation="eager"
    ).eval()
    cache, rows, before = DynamicCache(), 3, 15
    width = config["hidden_size"]
    head = torch.randn(100, width)
    with torch.inference_mode():
        body(inputs_embeds=torch.randn(rows, before, width), past_key_values=cache)
        with FlopCounterMode(display=False) as counter:
            out = body(inputs_embeds=torch.randn(rows, 1, width), past_key_values=cache)
            torch.nn.functional.linear(out.last_hidden_state[:, -1], head)
    model = StepModel.of(files.config, candidates=100, bytes_each=4)
    # Rotary embeddings are a product that is counted too, of next to nothing.
    counted = counter.get_total_flops()
    assert model.flops(rows, rows, before + 1) == pytest.approx(counted, rel=0.01)
    weights = sum(
        weight.numel() for name, weight in body.named_parameters() if name.endswith("_proj.weight")
    )
    assert model.layer_weights == weights


def test_bytes_grow_with_contexts_and_weights_are_read_once() -> None:
    model = StepModel(1000, 100, layers=2, kv_width=8, query_width=16, bytes_each=2)
    assert model.transferred(rows=0, context=50) == 2 * 1100
    assert model.transferred(3, 50) - model.transferred(2, 50) == 2 * 50 * 2 * 2 * 8


def test_the_roofline_is_the_slower_of_two() -> None:
    peak = Peak(flops=100.0, bandwidth=10.0, source="")
    assert peak.seconds(200, 10) == 2
    assert peak.seconds(200, 50) == 5


def test_the_peak_of_this_machine_is_plausible() -> None:
    peak = measured_peak("cpu", torch.float32)
    assert 1e8 < peak.flops < 1e14
    assert 1e8 < peak.bandwidth < 1e13


def test_a_round_of_several_calls_is_divided_among_them() -> None:
    calls = []
    took = milliseconds(lambda: calls.append(1), "cpu", calls=10, rounds=3)
    assert len(calls) == 31
    assert 0 <= took < 10


@pytest.mark.parametrize(("name", "known"), [("NVIDIA H200", "H200 SXM"), ("Tesla T4", None)])
def test_data_sheets_by_the_name_of_the_driver(name: str, known: str | None) -> None:
    device = data_sheet(name)
    assert (device.name if device else None) == known
