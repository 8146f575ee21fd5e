"""Settings that a model or a machine cannot have are refused by name, before anything is loaded."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from engine_adapter.engine_config import EngineConfig, SettingError
from engine_adapter.families import FAMILIES
from engine_adapter.fitting import QUANTIZED_BEFORE, QUANTIZED_ON_LOADING, check

DEMO = FAMILIES["demo"]
GUIDED = dataclasses.replace(DEMO, cfg_scale=2.0)
# What Qwen3-8B-Base says of itself.
BACKBONE: dict[str, Any] = {
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
}
AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
YARN = {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}


def config(**settings: Any) -> EngineConfig:
    return EngineConfig(model="", **{"dtype": "bfloat16", **settings})


@pytest.mark.parametrize(
    ("settings", "backbone", "begins"),
    [
        ({"max_model_len": 32769}, {}, "max_model_len: 32769 rows are more than the 32768"),
        ({"tensor_parallel_size": 3}, {}, "tensor_parallel_size: 3 workers cannot share"),
        (
            {"tensor_parallel_size": 4},
            {"num_key_value_heads": 6, "num_attention_heads": 36},
            "tensor_parallel_size: 4 workers cannot share the model's 6 key",
        ),
        ({"quantization": "int3"}, {}, "quantization: 'int3' is not one of awq, gptq"),
        ({"quantization": "awq"}, {}, "quantization: awq needs weights that were quantised"),
        ({"quantization": "gptq"}, AWQ, "quantization: gptq, but the model's config.json says awq"),
        ({"quantization": "fp8", "dtype": "float32"}, {}, "dtype: quantised with fp8"),
        ({"dtype": "float32"}, AWQ, "dtype: quantised with awq"),
    ],
)
def test_what_does_not_fit_the_model(
    settings: dict[str, Any], backbone: dict[str, Any], begins: str
) -> None:
    with pytest.raises(SettingError) as caught:
        check(config(**settings), BACKBONE | backbone, DEMO, on_cpu=False)
    assert str(caught.value).startswith(begins)


@pytest.mark.parametrize(
    ("settings", "backbone"),
    [
        ({}, {}),
        ({"max_model_len": 32768}, {}),
        ({"max_model_len": 100_000}, YARN),  # vLLM knows how far that reaches
        ({"tensor_parallel_size": 8}, {}),
        ({"tensor_parallel_size": 16}, {}),  # two workers have the same key and value head
        ({"quantization": "fp8"}, {}),
        ({"quantization": "awq"}, AWQ),
        ({}, AWQ),
        ({"max_rows": 1}, {}),
    ],
)
def test_what_fits(settings: dict[str, Any], backbone: dict[str, Any]) -> None:
    check(config(**settings), BACKBONE | backbone, DEMO, on_cpu=False)


def test_a_guided_model_needs_two_rows() -> None:
    check(config(max_rows=2), BACKBONE, GUIDED, on_cpu=False)
    with pytest.raises(SettingError, match="max_rows: must be at least 2"):
        check(config(max_rows=1), BACKBONE, GUIDED, on_cpu=False)


def test_the_kv_cache_of_a_cpu_holds_one_request_of_the_greatest_length() -> None:
    """A block of vLLM's is never used; the others must hold the rows."""
    fitting = config(max_model_len=1000, kv_blocks=9)
    check(fitting, BACKBONE, DEMO, on_cpu=True)
    with pytest.raises(SettingError, match=r"kv_blocks: 8 of 128 rows .* which takes 9"):
        check(dataclasses.replace(fitting, kv_blocks=8), BACKBONE, DEMO, on_cpu=True)
    small = config(max_model_len=1000, kv_blocks=33, block_size=32)
    check(small, BACKBONE, DEMO, on_cpu=True)
    with pytest.raises(SettingError, match="kv_blocks"):
        check(dataclasses.replace(small, kv_blocks=32), BACKBONE, DEMO, on_cpu=True)


def test_without_a_number_of_blocks_its_bytes_count() -> None:
    """36 layers with 8 heads of 128 channels in bfloat16: 147,456 bytes a row, keys and values."""
    rows = 2**30 // (147_456 * 128) * 128 - 128
    check(config(max_model_len=rows), BACKBONE, DEMO, on_cpu=True)
    with pytest.raises(SettingError, match=f"max_model_len: {rows + 1} rows .* holds {rows}"):
        check(config(max_model_len=rows + 1), BACKBONE, DEMO, on_cpu=True)
    with pytest.raises(SettingError, match=f"max_model_len: 32768 rows .* holds {rows};"):
        check(config(), BACKBONE, DEMO, on_cpu=True)
    check(config(max_model_len=rows + 1, tensor_parallel_size=2), BACKBONE, DEMO, on_cpu=True)


def test_a_configuration_without_sizes_is_no_mistake_of_a_setting() -> None:
    incomplete = {k: v for k, v in BACKBONE.items() if k != "num_hidden_layers"}
    with pytest.raises(ValueError, match="num_hidden_layers is None") as caught:
        check(config(), incomplete, DEMO, on_cpu=True)
    assert not isinstance(caught.value, SettingError)


@pytest.mark.parametrize(
    "settings",
    [{"max_rows": 0}, {"max_rows": 8, "max_batched_tokens": 7}, {"tensor_parallel_size": 0}],
)
def test_what_no_model_can_have(settings: dict[str, int]) -> None:
    with pytest.raises(SettingError) as caught:
        config(**settings)
    assert str(caught.value).startswith(f"{list(settings)[-1]}: ")


def test_vllm_knows_every_quantization_that_we_do() -> None:
    package = importlib.util.find_spec("vllm")
    assert package is not None
    assert package.submodule_search_locations is not None
    [root] = package.submodule_search_locations
    source = Path(root, "model_executor/layers/quantization/__init__.py").read_text()
    [names] = [
        {item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)}
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "QuantizationMethods"
    ]
    assert names >= {*QUANTIZED_BEFORE, *QUANTIZED_ON_LOADING}
