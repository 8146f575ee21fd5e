"""A model family as data: its vocabulary layout, delays, boundaries and defaults.

Terms: a *row* is one step of the model, one id per stream. A *frame* is one
codec time step, one code per stream. With delays ``d[s]`` the code of frame ``t``
in stream ``s`` stands in audio row ``t + d[s]``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from engine_adapter.encoder_files import audio_encoder_fault, encoder_fault
from engine_adapter.id_ranges import Stream, TextRange
from engine_adapter.json_object import read_object
from engine_adapter.layout import Layout, Segment
from engine_adapter.sampling_defaults import SamplingDefaults

Output = Literal["audio", "text", "text+audio"]
SpeechOutput = Literal["audio", "text+audio"]
OUTPUTS: tuple[Output, ...] = ("audio", "text", "text+audio")
Ability = Literal[
    "speaks", "converses", "transcribes", "clones", "understands_audio", "takes_instructions"
]
BY_EAR: tuple[Ability, ...] = ("transcribes", "clones", "understands_audio")
"""Those that need audio from outside."""
TEXT_SLOT = "text"
VOICE_SLOT = "voice"
INSTRUCTIONS_SLOT = "instructions"
MAX_CFG_SCALE = 100.0
SPEC_FILE = "speech.json"


class SpecError(ValueError):
    """A stream spec contradicts itself."""


@dataclass(frozen=True)
class StreamSpec:
    """Everything the engine must know of a family.

    Attributes:
        streams: stream 0 is the primary stream, the one vLLM sees; its delay is 0.
        audio_begin: the id, forced on stream 0, that opens audio. It is the last id
            of every bridge, so both rows of a guided pair begin audio with it.
        text_to_audio: forced ids between text and audio of one answer, ending in
            ``audio_begin``; empty for families that do not write both. The sampled
            end of text is replaced by the first of them.
        audio_end_ids: ids on stream 0 that end audio.
        min_frames: audio rows before an end id may be sampled.
        boundary: ``forced``: codes before a stream's delay and after its last frame
            are the stream's pad, and a tail flushes the delayed streams.
            ``sampled``: the model samples pads itself and audio ends with the end id.
        drain_id: id of stream 0 in the forced tail, after the end id.
        head_bias: whether the stream embedding is added for all streams or only for
            the auxiliary ones (streams 1 and up).
        pad_embedding: what id 0 on an auxiliary stream contributes: its embedding
            (``sum``), that of the stream's own pad (``pad``), or nothing (``zero``).
        unconditional: guidance prompt: ``zeros`` of the conditional length,
            the family's ``prompt``, or ``none`` (a request must bring its own).
        cfg_scale: guidance of audio where a request does not say; 1 is off.
        codec_first_stream: streams below it carry no codec code (OpusLM's SSL stream).
        prompts: per output, the ids of a plain request, with ``"text"`` for its text and,
            in families with voices, ``"voice"`` for its voice.
        speech_output: what a request for speech writes. Text comes first, a plan of the audio, and
            is not spoken.
        instructed: the ids of a request for speech with instructions, with ``"instructions"`` and
            ``"text"`` for what it brings; empty for families that take none.
        instructions: of a request for speech that brings none; empty: it has none.
        voices: by name, the ids on stream 0 that ask for a voice. A request that names
            none has the first.
        utterance_characters: the longest text that the model speaks well at once; a longer one
            is spoken as several utterances. None: any.
        conversation: prompts of turns, for families that converse.
        transcription: the prompt of the user's audio, to be written down.
        cloning: the prompt of a text to be spoken with the voice of a reference; its segments
            stand in the order in which they are written.
    """

    family: str
    vocab_size: int
    streams: tuple[Stream, ...]
    audio_begin: int
    audio_end_ids: tuple[int, ...]
    boundary: Literal["forced", "sampled"]
    head_bias: Literal["all", "auxiliary"]
    pad_embedding: Literal["zero", "sum", "pad"]
    prompts: dict[Output, tuple[int | str, ...]]
    sampling: dict[Literal["text", "audio"], SamplingDefaults]
    text: TextRange | None = None
    text_to_audio: tuple[int, ...] = ()
    min_frames: int = 1
    drain_id: int = 0
    unconditional: Literal["none", "zeros", "prompt"] = "none"
    unconditional_prompt: tuple[int, ...] = ()
    cfg_scale: float = 1.0
    codec_first_stream: int = 0
    speech_output: SpeechOutput = "audio"
    instructed: tuple[int | str, ...] = ()
    instructions: str = ""
    voices: dict[str, tuple[int, ...]] = field(default_factory=dict)
    utterance_characters: int | None = None
    conversation: Layout | None = None
    transcription: Layout | None = None
    cloning: Layout | None = None

    def __post_init__(self) -> None:
        types = get_type_hints(type(self))
        rules = ("boundary", "head_bias", "pad_embedding", "unconditional", "speech_output")
        for name in rules:
            if (value := getattr(self, name)) not in get_args(types[name]):
                raise SpecError(f"{name}: {value!r} is not one of {get_args(types[name])}")
        if not self.streams or self.streams[0].delay != 0:
            raise SpecError("stream 0 must exist and have delay 0")
        if any(s.delay < 0 or s.size < 1 for s in self.streams):
            raise SpecError("a stream has a negative delay or no codes")
        if not self.audio_end_ids or self.min_frames < 1:
            raise SpecError("audio needs an end id and at least one frame")
        if self.text_to_audio and self.text_to_audio[-1] != self.audio_begin:
            raise SpecError("text_to_audio must end with audio_begin")
        if (self.unconditional == "prompt") != bool(self.unconditional_prompt):
            raise SpecError("unconditional_prompt and unconditional='prompt' go together")
        if not 1 <= self.cfg_scale <= MAX_CFG_SCALE:  # not a number is not either
            raise SpecError(f"cfg_scale is {self.cfg_scale}, not in 1..{MAX_CFG_SCALE:g}")
        if self.cfg_scale > 1 and self.unconditional == "none":
            raise SpecError("cfg_scale above 1 needs an unconditional prompt")
        if self.utterance_characters is not None and self.utterance_characters < 1:
            raise SpecError("utterance_characters must be at least 1")
        self._check_outputs()
        self._check_instructed()
        self._check_ids()
        self._check_voices()
        self._check_layouts()

    def _check_outputs(self) -> None:
        for output, prompt in self.prompts.items():
            if output not in OUTPUTS or TEXT_SLOT not in prompt:
                raise SpecError(f"prompts: {output!r} is no output, or has no place for text")
            for item in prompt:
                if isinstance(item, str) and item not in (TEXT_SLOT, VOICE_SLOT):
                    raise SpecError(f"prompts: {output!r}: {item!r} is no id, and no slot either")
            if "text" in output and (self.text is None or not self.text.end_ids):
                raise SpecError(f"prompts: {output!r} needs a text range with an end id")
            if output == "text+audio" and not self.text_to_audio:
                raise SpecError("prompts: 'text+audio' needs text_to_audio")
            for modality in output.split("+"):
                if modality not in self.sampling:
                    raise SpecError(f"sampling: {modality!r} has no defaults")
        if "audio" in self.prompts and self.speech_output not in self.prompts:
            raise SpecError(f"speech_output: prompts have no {self.speech_output!r}")

    def _check_instructed(self) -> None:
        if not isinstance(self.instructions, str) or (self.instructions and not self.instructed):
            raise SpecError("instructions: are a text, and instructed has their place")
        if not self.instructed:
            return
        slots = sorted(item for item in self.instructed if isinstance(item, str))
        if slots != [INSTRUCTIONS_SLOT, TEXT_SLOT] or "audio" not in self.prompts:
            raise SpecError("instructed: needs one place for instructions, one for text, and audio")
        if self.voices:
            raise SpecError("instructed: has no place for a voice")

    def _check_ids(self) -> None:
        """Every id exists, and those that tell phases apart are not ambiguous."""
        ids = [i for s in self.streams for i in (s.first_id, s.end - 1, s.pad_id)]
        ids += [*self.audio_end_ids, *self.text_to_audio, self.audio_begin, self.drain_id]
        ids += [i for prompt in self.prompts.values() for i in prompt if isinstance(i, int)]
        ids += [i for i in self.instructed if isinstance(i, int)]
        ids += self.unconditional_prompt
        ids += [i for voice in self.voices.values() for i in voice]
        ids += [i for layout in self.layouts for i in layout.ids()]
        if self.text is not None:
            ids += [self.text.first_id, self.text.end - 1, *self.text.end_ids]
        if any(not 0 <= i < self.vocab_size for i in ids):
            raise SpecError("an id lies outside the vocabulary")
        primary = self.streams[0]
        if any(primary.first_id <= i < primary.end for i in self.audio_end_ids):
            raise SpecError("an audio end id is a code of stream 0")
        if self.text is not None:
            marks = (*self.text.end_ids, *self.text_to_audio[:1])
            if any(self.text.first_id <= i < self.text.end for i in marks):
                raise SpecError("a text end id, or the first bridge id, is a text id")
        if self.boundary == "sampled" and any(s.pad_id >= s.first_id for s in self.streams):
            raise SpecError("sampled pads must lie below their stream's codes")

    def _check_voices(self) -> None:
        """Voices have a place in a prompt, and ids that mean nothing else."""
        if any(VOICE_SLOT in prompt for prompt in self.prompts.values()) != bool(self.voices):
            raise SpecError("voices, and a prompt with a place for them, go together")
        ranges = [(s.first_id, s.end) for s in self.streams]
        marks = {self.audio_begin, self.drain_id, *self.audio_end_ids, *self.text_to_audio}
        marks.update(s.pad_id for s in self.streams)
        if self.text is not None:
            ranges.append((self.text.first_id, self.text.end))
            marks.update(self.text.end_ids)
        for name, ids in self.voices.items():
            if not name or not ids:
                raise SpecError(f"voices: {name!r} has no name or no ids")
            if any(i in marks or any(low <= i < end for low, end in ranges) for i in ids):
                raise SpecError(f"voices: {name!r} has an id of text, of a code or of a mark")

    def _check_layouts(self) -> None:
        """Layouts have what their task needs, and room for the delays of what they hold."""
        for layout in self.layouts:
            kinds = [(s.role, s.content) for s in layout.segments]
            if len(set(kinds)) != len(kinds):
                raise SpecError("a layout has two segments of one kind")
            for output in layout.answers:
                if output not in OUTPUTS or ("text" in output and self.text is None):
                    raise SpecError(f"a layout answers {output!r}, which the family cannot write")
                if output == "text+audio" and not self.text_to_audio:
                    raise SpecError("a layout answers 'text+audio' without text_to_audio")
            for segment in layout.segments:
                if segment.has_codes and len(segment.ends) + segment.drain < self.max_delay:
                    raise SpecError(f"a segment of {segment.content} ends before its streams do")
                if segment.embedded and (segment.role, segment.content) != ("user", "audio"):
                    raise SpecError("embeddings are made of the user's audio and of nothing else")
                if segment.embedded and (segment.ends or segment.drain or segment.frames):
                    raise SpecError("embedded audio has no delays and any length")
        if self.hears_embeddings and any(s.has_codes for s in self._encoded()):
            raise SpecError("audio from outside becomes codes or embeddings, not both")
        if self.transcription is not None and (
            not self.transcription.hears or "text" not in self.transcription.answers
        ):
            raise SpecError("transcription needs the user's audio and answers text")
        if self.cloning is not None and (
            self.cloning.speaker is None or self.speech_output not in self.cloning.answers
        ):
            raise SpecError(f"cloning needs a speaker and answers {self.speech_output}")

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """Those there are."""
        found = (self.conversation, self.transcription, self.cloning)
        return tuple(layout for layout in found if layout is not None)

    @property
    def abilities(self) -> tuple[Ability, ...]:
        """What the family can be asked for."""
        able: dict[Ability, bool] = {
            "speaks": "audio" in self.prompts,
            "converses": self.conversation is not None,
            "transcribes": self.transcription is not None,
            "clones": self.cloning is not None,
            "understands_audio": any(layout.hears for layout in self.layouts),
            "takes_instructions": bool(self.instructed),
        }
        return tuple(ability for ability, has in able.items() if has)

    @property
    def takes_audio(self) -> bool:
        """Whether audio from outside can become part of a prompt, and so has to be encoded."""
        return bool(self._encoded())

    @property
    def hears_embeddings(self) -> bool:
        """Whether that audio is encoded as embeddings, by an encoder of continuous audio."""
        return any(segment.embedded for segment in self._encoded())

    def _encoded(self) -> list[Segment]:
        """The segments whose content is audio from outside."""
        return [
            segment
            for layout in self.layouts
            for segment in layout.segments
            if segment.content == "speaker" or (segment.role, segment.content) == ("user", "audio")
        ]

    def deafness_in(self, directory: Path) -> str | None:
        """Why audio from outside cannot become part of a prompt with a model directory of the
        family, beginning with the part at fault; None: it can, or the family takes none."""
        if not self.takes_audio:
            return None
        if self.hears_embeddings:
            return audio_encoder_fault(directory)
        return encoder_fault(directory, units=self.codec_first_stream > 0)

    def abilities_in(self, directory: Path) -> tuple[Ability, ...]:
        """What a model directory of the family can be asked for."""
        if self.deafness_in(directory) is None:
            return self.abilities
        return tuple(ability for ability in self.abilities if ability not in BY_EAR)

    @property
    def num_streams(self) -> int:
        """Streams per row, the primary one included."""
        return len(self.streams)

    @property
    def delays(self) -> tuple[int, ...]:
        """Delay of each stream in rows."""
        return tuple(s.delay for s in self.streams)

    @property
    def max_delay(self) -> int:
        """The largest delay: frames of latency, and extra audio rows of a request."""
        return max(self.delays)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What a request may ask this family to write."""
        return tuple(self.prompts)

    @property
    def tail_rows(self) -> int:
        """Rows from the one that carries the end id to the last one, inclusive."""
        return max(self.max_delay, 1) if self.boundary == "forced" else 1

    def audio_rows(self, frames: int) -> int:
        """Audio rows of a request that writes ``frames`` whole frames."""
        steps = frames if self.boundary == "forced" else frames + self.max_delay
        return steps + self.tail_rows

    def candidates(self, stream: int) -> list[int]:
        """Ids that may be sampled on ``stream`` in an audio row, in ascending code order.

        Codes first, then the pad where pads are sampled, then (stream 0) the end ids.
        """
        s = self.streams[stream]
        ids = list(range(s.first_id, s.end))
        if self.boundary == "sampled":
            ids.append(s.pad_id)
        if stream == 0:
            ids.extend(self.audio_end_ids)
        return ids

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StreamSpec:
        """The inverse of :meth:`to_dict`.

        Raises:
            SpecError: a key is unknown, missing, or the values contradict each other.
        """
        try:
            values = dict(data)
            values["streams"] = tuple(Stream(**s) for s in values["streams"])
            if values.get("text") is not None:
                text = dict(values["text"])
                text["end_ids"] = tuple(text["end_ids"])
                values["text"] = TextRange(**text)
            values["sampling"] = {k: SamplingDefaults(**v) for k, v in values["sampling"].items()}
            values["prompts"] = {k: tuple(v) for k, v in values["prompts"].items()}
            values["voices"] = {k: tuple(v) for k, v in values.get("voices", {}).items()}
            for key in ("audio_end_ids", "text_to_audio", "unconditional_prompt", "instructed"):
                values[key] = tuple(values.get(key, ()))
            for key in ("conversation", "transcription", "cloning"):
                if values.get(key) is not None:
                    values[key] = Layout.from_dict(values[key])
            return cls(**values)
        except SpecError:
            raise
        except KeyError as error:
            raise SpecError(f"stream spec: {error.args[0]} is missing") from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise SpecError(f"stream spec: {error}") from error

    def save(self, directory: Path) -> None:
        """Writes ``speech.json`` into a model directory."""
        (directory / SPEC_FILE).write_text(json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, directory: str | Path) -> StreamSpec:
        """Reads ``speech.json`` of a model directory.

        Raises:
            SpecError: the file is missing or not a valid spec.
        """
        path = Path(directory) / SPEC_FILE
        try:
            data = read_object(path)
        except ValueError as error:
            raise SpecError(str(error)) from error
        try:
            return cls.from_dict(data)
        except SpecError as error:
            raise SpecError(f"{path}: {error}") from error
