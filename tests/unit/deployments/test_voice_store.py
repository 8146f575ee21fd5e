"""Stored voices and kept answers: one file, several front ends, limits."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from deployments.stores.answer_store import AnswerStore, KeptAnswer
from deployments.stores.database import Database
from deployments.stores.voice_store import StoredVoice, TooManyVoices, VoiceExists, VoiceStore

CODES = np.arange(18, dtype=np.int32).reshape(2, 9)
ADA = StoredVoice("ada", 100, "recording 7")


def voices(tmp_path: Path, max_voices: int = 3) -> VoiceStore:
    return VoiceStore(Database(tmp_path / "made" / "store.sqlite3"), max_voices)


def test_voices_are_found_by_every_front_end(tmp_path: Path) -> None:
    one, other = voices(tmp_path), voices(tmp_path)
    assert other.voices() == []
    one.add(ADA, b"RIFF")
    one.add(StoredVoice("Bob", 101), b"fLaC")
    assert other.voices() == [StoredVoice("Bob", 101), ADA]
    assert other.find("ada") == ADA
    assert other.audio("ada") == b"RIFF"
    assert other.find("eve") is other.audio("eve") is None


def test_a_name_is_taken_once_and_space_is_limited(tmp_path: Path) -> None:
    store = voices(tmp_path)
    store.add(ADA, b"1")
    with pytest.raises(VoiceExists, match="'ada'"):
        store.add(StoredVoice("ada", 200), b"2")
    assert store.audio("ada") == b"1"
    store.add(StoredVoice("b", 1), b"")
    store.add(StoredVoice("c", 1), b"")
    with pytest.raises(TooManyVoices, match="3 voices"):
        store.add(StoredVoice("d", 1), b"")
    assert store.remove("b")
    assert not store.remove("b")
    store.add(StoredVoice("d", 1), b"")


def test_of_many_at_once_exactly_the_limit_is_stored(tmp_path: Path) -> None:
    def add(index: int) -> bool:
        try:
            voices(tmp_path).add(StoredVoice(f"v{index}", 1), b"x")
        except TooManyVoices:
            return False
        return True

    voices(tmp_path).voices()
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 3


def test_codes_belong_to_a_voice_and_an_encoder(tmp_path: Path) -> None:
    store = voices(tmp_path)
    store.add(ADA, b"")
    assert store.codes(ADA, "x") is None
    store.keep_codes(ADA, "x", CODES)
    store.keep_codes(ADA, "x", CODES)
    kept = store.codes(ADA, "x")
    assert kept is not None
    assert kept.dtype == np.int32
    assert np.array_equal(kept, CODES)
    assert store.codes(ADA, "y") is None


def test_a_new_voice_of_an_old_name_does_not_get_its_codes(tmp_path: Path) -> None:
    store = voices(tmp_path)
    store.add(ADA, b"")
    store.keep_codes(ADA, "x", CODES)
    store.remove("ada")
    later = StoredVoice("ada", 200)
    store.add(later, b"")
    assert store.codes(later, "x") is None
    store.keep_codes(ADA, "x", CODES)  # was being encoded meanwhile
    assert store.codes(later, "x") is None


def answers(tmp_path: Path, now: list[float], most: int = 3) -> AnswerStore:
    return AnswerStore(Database(tmp_path / "s"), 60, most, clock=lambda: now[0])


def keep(store: AnswerStore, transcript: str = "Hi.") -> KeptAnswer:
    name, expires = store.reserve()
    answer = KeptAnswer(name, "m", expires, transcript, CODES)
    store.keep(answer)
    return answer


def test_an_answer_is_kept_until_it_expires(tmp_path: Path) -> None:
    now = [1000.0]
    store = answers(tmp_path, now)
    answer = keep(store)
    assert answer.expires == 1060
    now[0] = 1059
    found = answers(tmp_path, now).find(answer.id)
    assert found is not None
    assert (found.model, found.transcript, found.expires) == ("m", "Hi.", 1060)
    assert np.array_equal(found.codes, CODES)
    now[0] = 1060
    assert store.find(answer.id) is None
    assert store.find("audio_none") is None


def test_the_oldest_answers_go_first(tmp_path: Path) -> None:
    now = [0.0]
    store = answers(tmp_path, now)
    kept = []
    for second in range(5):
        now[0] = float(second)
        kept.append(keep(store))
    assert [store.find(a.id) is not None for a in kept] == [False, False, True, True, True]


def test_an_answer_without_frames(tmp_path: Path) -> None:
    store = answers(tmp_path, [0.0])
    name, expires = store.reserve()
    store.keep(KeptAnswer(name, "m", expires, "", CODES[:0]))
    found = store.find(name)
    assert found is not None
    assert found.codes.shape == (0, 9)
