"""How a converted Bagpiper is asked for speech: by the file published beside its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine_adapter.conversion.conversion import Conversion, Request
from engine_adapter.conversion.errors import ConversionError
from engine_adapter.families import FAMILIES
from engine_adapter.spec import StreamSpec
from tests.official.bagpiper import write_bagpiper, write_bagpiper_tts
from tests.official.checkpoint import OfficialCheckpoint
from tests.official.opuslm import write_opuslm
from tests.official.published import BAGPIPER, BAGPIPER_TTS
from tests.unit.conversion.commands import Official, Refusal

GENERAL = """
dtype: bfloat16
enforce_modality: ["text", "audio"]
text: {temperature: 0.6, topk: 20, cfg: 1, max_step: 8192, min_step: 1}
audio: {temperature: 0.8, topk: 20, cfg: 3, max_step: 2048, min_step: 50}
"""


def spec_of(checkpoint: OfficialCheckpoint, inference: Path | None = None) -> StreamSpec:
    """What is served."""
    audio, _, codec = checkpoint.options[1:4]
    request = Request(
        checkpoint.family,
        checkpoint.file,
        backbone_config=checkpoint.backbone_config,
        audio_config=Path(audio),
        codec_config=Path(codec),
        inference_config=inference,
    )
    return Conversion.prepare(request).spec


def test_the_pretrained_one_comes_without_a_file(official: Official) -> None:
    assert spec_of(official(write_bagpiper)) == BAGPIPER


def test_the_one_for_speech_plans_in_text(official: Official) -> None:
    assert spec_of(official(write_bagpiper_tts)) == BAGPIPER_TTS


def test_the_general_one_has_a_file_of_another_name(official: Official, tmp_path: Path) -> None:
    checkpoint = official(write_bagpiper)
    (tmp_path / "given.yaml").write_text(GENERAL)
    given = spec_of(checkpoint, tmp_path / "given.yaml")
    assert (given.speech_output, given.cfg_scale, given.min_frames) == ("text+audio", 3.0, 50)
    assert given.instructed == BAGPIPER_TTS.instructed
    (tmp_path / "model.pt").symlink_to(checkpoint.file)
    (tmp_path / "inference_audio.yaml").write_text(GENERAL)
    moved = replace(checkpoint, file=tmp_path / "model.pt")
    assert spec_of(moved) == given


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("enforce_modality: [text]", r"enforce_modality is \['text'\], not \[audio\] or"),
        ("dtype: bfloat16", "enforce_modality is None"),
        ("enforce_modality: [audio]\ntext: {temperature: 1, topk: 20}", "audio has no temperature"),
        (GENERAL.replace("cfg: 3", "cfg: 0.5"), "cfg_scale is 0.5"),
        (GENERAL.replace("min_step: 50", "min_step: 0"), "at least one frame"),
        (GENERAL.replace("temperature: 0.8", "temperature: hot"), "hot"),
        ("- a list", "not a mapping"),
    ],
)
def test_a_file_that_says_nothing_of_speech(
    content: str, message: str, official: Official, tmp_path: Path
) -> None:
    (tmp_path / "inference.yaml").write_text(content)
    with pytest.raises(ConversionError, match=message):
        spec_of(official(write_bagpiper), tmp_path / "inference.yaml")


def test_the_family_itself_is_as_any_checkpoint() -> None:
    """What depends on the checkpoint is neutral in it."""
    family = FAMILIES["bagpiper"]
    assert (family.speech_output, family.cfg_scale, family.min_frames) == ("audio", 1.0, 1)


def test_opuslm_has_no_such_file(official: Official, refusal: Refusal) -> None:
    arguments = official(write_opuslm).arguments
    error = refusal([*arguments, "--inference-config", "inference.yaml"])
    assert "--inference-config: opuslm has none" in error
