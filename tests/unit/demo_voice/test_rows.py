"""Training rows are those that the served model sees."""

import numpy as np
import pytest
from numpy.typing import NDArray

from demo_voice.rows import IGNORED, build
from engine_adapter.families import FAMILIES
from engine_adapter.tiny import make_tiny
from tests.reference.generate import Reference, ReferenceRequest, text_prompt

SPEC = FAMILIES["demo"]
ASSERTED_SEEDS = 40


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(make_tiny("demo", tmp_path_factory.mktemp("demo")), max_model_len=256)


def test_an_utterance_has_the_rows_that_generating_it_gives(reference: Reference) -> None:
    text = [SPEC.text.first_id + byte for byte in b"hello"] if SPEC.text else []
    prompt = text_prompt(SPEC, "audio", text, "slt")
    for seed in range(ASSERTED_SEEDS):
        result = reference.generate(ReferenceRequest(prompt, seed=seed, max_frames=120))
        if result.finish_reason == "stop" and len(result.codes) > 8:
            break
    else:
        pytest.fail("no request ended by itself")
    example = build(SPEC, text, "slt", np.array(result.codes, dtype=np.uint8), prompted=True)
    assert example.ids.tolist() == [*map(list, prompt), *result.raw_ids]


def codes(frames: int) -> NDArray[np.uint8]:
    return np.random.default_rng(3).integers(0, 256, (frames, 8)).astype(np.uint8)


@pytest.mark.parametrize("prompted", [True, False])
def test_every_code_and_the_end_is_predicted_once_from_the_row_before(prompted: bool) -> None:
    frames = 12
    example = build(SPEC, [20, 21], "rms", codes(frames), prompted=prompted)
    assert len(example.targets) == len(example.ids) - 1
    for stream in range(8):
        learned = example.targets[:, stream] != IGNORED
        assert learned.sum() == frames + (stream == 0)
        rows = example.ids[1:][learned, stream]
        for target, row in zip(example.targets[learned, stream], rows, strict=True):
            is_end = target == 256
            expected = SPEC.audio_end_ids[0] if is_end else SPEC.streams[stream].first_id + target
            assert row == expected
            assert not is_end or stream == 0


def test_without_a_prompt_the_unconditional_one_is_left() -> None:
    example = build(SPEC, [20, 21], "rms", codes(9), prompted=False)
    begin = len(SPEC.unconditional_prompt)
    assert example.ids[: begin + 1, 0].tolist() == [*SPEC.unconditional_prompt, SPEC.audio_begin]
    assert not example.ids[: begin + 1, 1:].any()
