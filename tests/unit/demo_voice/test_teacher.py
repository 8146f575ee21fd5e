"""The teacher speaks, always the same, and its speech is kept in shards."""

import ctypes.util
import os
from pathlib import Path

import numpy as np
import pytest

from demo_voice.recipe import SAMPLE_RATE, Recipe
from demo_voice.shards import (
    Utterance,
    code_shards,
    read_codes,
    read_speech,
    speech_shards,
    synthesise,
    write_codes,
)
from demo_voice.teacher import VOICES, speak, trim

flite = pytest.mark.skipif(
    ctypes.util.find_library("flite") is None and os.environ.get("CI") != "true",
    reason="flite is not installed",
)


@flite
@pytest.mark.parametrize("voice", VOICES)
def test_the_same_text_gives_the_same_speech(voice: str) -> None:
    speech = speak("Good morning, everybody.", voice)
    assert speech.dtype == np.int16
    assert 0.8 < len(speech) / SAMPLE_RATE < 3
    assert np.abs(speech.astype(int)).max() > 3000
    assert np.array_equal(speak("Good morning, everybody.", voice), speech)
    assert len(speak("Good morning, everybody, and good night.", voice)) > len(speech)


@flite
def test_voices_differ_and_others_do_not_exist() -> None:
    one, other = (speak("Good morning.", voice) for voice in VOICES)
    assert len(one) != len(other) or not np.array_equal(one, other)
    with pytest.raises(ValueError, match="'alloy' is not one of rms, slt"):
        speak("Good morning.", "alloy")


@flite
def test_nothing_to_say_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"silence|cannot speak"):
        speak("", "rms")


def test_silence_at_both_ends_is_cut_to_a_rest() -> None:
    samples = np.zeros(3 * SAMPLE_RATE, dtype=np.int16)
    samples[SAMPLE_RATE : 2 * SAMPLE_RATE] = 1000
    cut = trim(samples)
    loud = np.flatnonzero(cut)
    assert (loud[0], len(loud)) == (0.05 * SAMPLE_RATE, SAMPLE_RATE)
    assert len(cut) == (0.05 + 1 + 0.12) * SAMPLE_RATE
    assert np.array_equal(trim(samples[SAMPLE_RATE : SAMPLE_RATE + 100]), [1000] * 100)


@flite
def test_shards_are_made_once_and_voices_take_turns(tmp_path: Path) -> None:
    texts = ["One.", "Two.", "Three.", "Four.", "Five."]
    recipe = Recipe(shard=2)
    synthesise(texts, recipe, tmp_path, processes=1)
    assert speech_shards(tmp_path) == [0, 1, 2]
    utterances = [u for shard in speech_shards(tmp_path) for u in read_speech(tmp_path, shard)]
    assert [u.text for u in utterances] == texts
    assert [u.voice for u in utterances] == ["rms", "slt", "rms", "slt", "rms"]
    for each in utterances:
        assert np.array_equal(each.samples, speak(each.text, each.voice))

    kept = (tmp_path / "speech-0000.npz").stat().st_mtime_ns
    (tmp_path / "speech-0001.npz").unlink()
    synthesise(texts, recipe, tmp_path, processes=1)
    assert speech_shards(tmp_path) == [0, 1, 2]
    assert (tmp_path / "speech-0000.npz").stat().st_mtime_ns == kept
    assert not list(tmp_path.glob(".*"))


def test_codes_come_back_as_they_were(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    written = [
        Utterance(
            text, "rms", np.empty(0, dtype=np.int16), random.integers(0, 256, (n, 8), np.uint8)
        )
        for text, n in (("One.", 3), ("Two.", 5))
    ]
    write_codes(tmp_path, 4, written)
    assert code_shards(tmp_path) == [4]
    read = list(read_codes(tmp_path, 4))
    assert [(u.text, u.voice) for u in read] == [(u.text, u.voice) for u in written]
    for one, other in zip(read, written, strict=True):
        assert np.array_equal(one.codes, other.codes)
