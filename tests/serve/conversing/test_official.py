"""Models of official files over HTTP: what they write, say and sound like equals what is made of
these files by hand, from texts and samples to texts and samples."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from openai import OpenAI

from engine_adapter.spec import Output
from tests.reference import conversation as by_hand
from tests.reference.generate import ReferenceRequest
from tests.reference.model import PromptRow
from tests.serve.conversing.clips import heard, pcm_of, speech
from tests.serve.conversing.expected import MOST, Official, check_sound
from tests.unit.deployments.answering_stand_in import wav

pytestmark = pytest.mark.serve

TEXT = "Hello there."
Models = dict[str, Official]


@contextmanager
def recorded(http: httpx.Client, name: str, samples: NDArray[Any]) -> Iterator[None]:
    """A stored voice."""
    sample = {"audio_sample": ("a.wav", wav(samples))}
    made = http.post("/v1/audio/voices", data={"name": name}, files=sample)
    assert made.status_code == 200, made.text
    yield
    assert http.delete(f"/v1/audio/voices/{name}").status_code == 204


def check_speech(
    http: httpx.Client,
    model: Official,
    rows: Sequence[PromptRow],
    *,
    output: Output = "audio",
    voice: str = "default",
    cfg_scale: float | None = None,
    **asked: Any,
) -> None:
    """``TEXT`` is spoken as the official files say.

    Args:
        rows: the prompt.
        output: what is written; only audio is sent.
        asked: other fields.
    """
    seed, expected = model.firm(rows, output, cfg_scale=cfg_scale)
    answer = http.post(
        "/v1/audio/speech",
        json={
            "model": model.checkpoint.family,
            "input": TEXT,
            "voice": voice,
            "seed": seed,
            "cfg_scale": cfg_scale,
            "max_duration_seconds": MOST / 50,
            "response_format": "wav",
            "stream": False,
            **asked,
        },
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-finish-reason"] == expected.finish_reason
    check_sound(pcm_of(answer.content), model.sent(expected.codes))


@dataclass
class Talk:
    """A conversation on its way.

    Attributes:
        turns: as the reference reads them.
        messages: as the service does.
    """

    model: Official
    turns: list[by_hand.Turn] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)

    def ask(self, asked: str | NDArray[np.float64]) -> None:
        """The user says something."""
        if isinstance(asked, str):
            self.messages.append({"role": "user", "content": asked})
            self.turns.append(("user", "text", self.model.checkpoint.ids(asked)))
        else:
            self.messages.append({"role": "user", "content": [heard(asked)]})
            self.turns.append(("user", "audio", self.model.heard(asked)))

    def write(self, client: OpenAI, rows: Sequence[PromptRow]) -> None:
        """The answer, in text alone, is that of the official files.

        Args:
            rows: the prompt.
        """
        seed, expected = self.model.firm(rows, "text")
        message, usage = self._completed(client, len(rows), seed=seed)
        text = self.model.checkpoint.text(expected.text_ids)
        assert message.content == text
        assert usage.completion_tokens == len(text)

    def speak(
        self,
        client: OpenAI,
        rows: Sequence[PromptRow],
        voice: str = "default",
        cfg_scale: float | None = None,
    ) -> None:
        """The answer, in text and audio, is that of the official files, and becomes a turn.

        Args:
            rows: the prompt.
        """
        model, checkpoint = self.model, self.model.checkpoint
        first = 100 * len(self.turns)
        seed, expected = model.firm(
            rows, "text+audio", seeds=range(first, first + 40), cfg_scale=cfg_scale
        )
        message, usage = self._completed(
            client,
            len(rows),
            seed=seed,
            modalities=["text", "audio"],
            audio={"voice": voice, "format": "wav"},
            extra_body={"cfg_scale": cfg_scale},
        )
        text = checkpoint.text(expected.text_ids)
        codes = expected.codes[: MOST - len(text)]
        assert message.audio.transcript == text
        assert usage.completion_tokens_details.audio_tokens == len(codes)
        check_sound(pcm_of(message.audio.data), model.sent(codes))
        self.messages.append({"role": "assistant", "audio": {"id": message.audio.id}})
        self.turns += [("assistant", "text", checkpoint.ids(text)), ("assistant", "audio", codes)]

    def _completed(self, client: OpenAI, prompt: int, **asked: Any) -> tuple[Any, Any]:
        """The message and the usage of an answer to a prompt of so many rows."""
        answer = client.chat.completions.create(
            model=self.model.checkpoint.family,
            messages=self.messages,
            max_completion_tokens=MOST,
            **asked,
        )
        assert answer.usage.prompt_tokens == prompt
        return answer.choices[0].message, answer.usage


def check_transcription(client: OpenAI, model: Official) -> None:
    """Recordings are written down as the official files say, greedily."""
    compared = 0
    for pitch in range(40):
        clip = speech(1, pitch)
        rows: Any = (
            by_hand.bagpiper([("user", "audio", model.heard(clip))], "text")
            if model.listening is None
            else by_hand.opuslm_transcription(model.heard(clip))
        )
        request = ReferenceRequest(rows, output="text", temperature=0.0, max_text_tokens=MOST)
        expected = model.answer(request)
        if expected is None or expected.finish_reason != "stop":
            continue
        answer = client.audio.transcriptions.create(
            model=model.checkpoint.family, file=("a.wav", wav(clip))
        )
        assert answer.text == model.checkpoint.text(expected.text_ids)
        compared += 1
        if compared == 2:
            return
    pytest.fail("every transcript is short, long, or has a close decision")


def test_opuslm_speaks(http: httpx.Client, official: Models) -> None:
    model = official["opuslm"]
    check_speech(http, model, by_hand.opuslm_speech(model.checkpoint.ids(TEXT)))


def test_opuslm_imitates_recorded_voices(http: httpx.Client, official: Models) -> None:
    """One that is filled up to 500 frames, and one that is cut."""
    model = official["opuslm"]
    for seconds in (1.5, 10.3):
        voice = speech(seconds, 3)
        rows = by_hand.opuslm_cloning(model.checkpoint.ids(TEXT), model.heard(voice))
        with recorded(http, "eve", voice):
            check_speech(http, model, rows, voice="eve")


def test_opuslm_transcribes(client: OpenAI, official: Models) -> None:
    check_transcription(client, official["opuslm"])


def test_bagpiper_speaks(http: httpx.Client, official: Models) -> None:
    """It plans in text first: by itself, with its own guidance, and as it is instructed."""
    model = official["bagpiper"]
    text = ("user", "text", model.checkpoint.ids(TEXT))
    check_speech(http, model, by_hand.bagpiper([text], "text+audio"), output="text+audio")
    how = "Be kind."
    check_speech(
        http,
        model,
        by_hand.bagpiper([("system", "text", model.checkpoint.ids(how)), text], "text+audio"),
        output="text+audio",
        cfg_scale=1.5,
        instructions=how,
    )


def test_bagpiper_converses(client: OpenAI, official: Models) -> None:
    """Text and audio are answered with text and guided audio; more audio with text."""
    talk = Talk(official["bagpiper"])
    questions: list[Any] = ["And then?", speech(0.5)]
    for asked in questions:
        talk.ask(asked)
        talk.speak(client, by_hand.bagpiper(talk.turns, "text+audio"), cfg_scale=2.0)
    talk.ask(speech(0.7, 2))
    talk.write(client, by_hand.bagpiper(talk.turns, "text"))


def test_bagpiper_transcribes(client: OpenAI, official: Models) -> None:
    check_transcription(client, official["bagpiper"])


def test_opuslm_dialogue_converses(client: OpenAI, http: httpx.Client, official: Models) -> None:
    """Three turns with a recorded voice."""
    model, voice = official["opuslm-dialogue"], speech(1, 3)
    talk = Talk(model, [("system", "speaker", model.heard(voice))])
    questions: list[Any] = [speech(0.5), "And then?", speech(0.4, 1)]
    with recorded(http, "eve", voice):
        for asked in questions:
            talk.ask(asked)
            talk.speak(client, by_hand.dialogue(talk.turns, spoken=True), voice="eve")
