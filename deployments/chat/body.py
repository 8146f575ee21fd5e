"""The body of ``POST /v1/chat/completions``: OpenAI's fields and our extensions."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
)

from deployments.audio.formats import AudioFormat
from deployments.speech.body import Voice, voice_id
from deployments.validation import (
    HALF_A_PAIR,
    INTEGRAL,
    STRICT,
    Count,
    Encodable,
    Probability,
    Scale,
    Seed,
    Temperature,
    Whole,
    encodable,
)

_MOST_MESSAGES = 1024
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
ChatAudioFormat = Literal["wav", "mp3", "flac", "opus", "aac", "pcm16"]


def _only(*neutral: Any) -> BeforeValidator:
    """Of a field that OpenAI has and these models do not: only values that ask for nothing."""

    values = " or ".join(dict.fromkeys(json.dumps(value) for value in neutral))
    refusal = f"must be {values}" if neutral else "is not supported here; leave it out"

    def check(value: Any) -> Any:
        if not any(type(value) is type(n) and value == n for n in (None, *neutral)):
            raise ValueError(refusal)
        return value

    return BeforeValidator(check)


_Nothing = Annotated[None, _only()]
_NoList = Annotated[Annotated[list[Any], Field(max_length=0)] | None, _only([])]
_NoMap = Annotated[Annotated[dict[str, Any], Field(max_length=0)] | None, _only({})]
_Zero = Annotated[Annotated[float, Field(ge=0, le=0)] | None, _only(0, 0.0)]
_False = Annotated[Literal[False] | None, _only(False)]


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    if not encodable(text):
        raise ValueError(HALF_A_PAIR)
    return text


Text = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"pattern": r"\S"}),
    BeforeValidator(lambda value: _text(value) if isinstance(value, str) else value),
]


class TextPart(BaseModel):
    """Text of a message."""

    model_config = STRICT

    type: Literal["text"]
    text: Text


class AudioData(BaseModel):
    """A whole audio file.

    Attributes:
        data: base64.
        format: what the client says it is. The file itself decides.
    """

    model_config = STRICT

    data: str = Field(min_length=1, json_schema_extra={"pattern": _BASE64})
    format: str = Field(min_length=1, max_length=16)


class AudioPart(BaseModel):
    """Audio of a user's message."""

    model_config = STRICT

    type: Literal["input_audio"]
    input_audio: AudioData


class AnswerReference(BaseModel):
    """Audio that this service made earlier.

    The other keys are those of our own answer; they may stand beside the id and say nothing new.
    """

    model_config = STRICT

    id: Encodable = Field(min_length=1, max_length=64)
    data: str | None = None
    expires_at: Whole | None = None
    transcript: str | None = None


_Whole = Annotated[Text, Tag("text")]
_TextParts = Annotated[list[TextPart], Field(min_length=1), Tag("parts")]
_UserParts = Annotated[
    list[Annotated[TextPart | AudioPart, Field(discriminator="type")]],
    Field(min_length=1),
    Tag("parts"),
]


def _form_of_content(content: Any) -> str | None:
    if isinstance(content, str):
        return "text"
    return "parts" if isinstance(content, list) else None


_EITHER = Discriminator(
    _form_of_content,
    custom_error_type="content",
    custom_error_message="must be a text or a list of parts",
)


class SystemMessage(BaseModel):
    """What holds for the whole conversation; ``developer`` is OpenAI's new name of its role."""

    model_config = STRICT

    role: Literal["system", "developer"]
    content: Annotated[_Whole | _TextParts, _EITHER]
    name: _Nothing = None


class UserMessage(BaseModel):
    """What a user said."""

    model_config = STRICT

    role: Literal["user"]
    content: Annotated[_Whole | _UserParts, _EITHER]
    name: _Nothing = None


class AssistantMessage(BaseModel):
    """What the model said. Other keys of our own answers are taken where they are empty."""

    model_config = STRICT

    role: Literal["assistant"]
    content: Annotated[_Whole | _TextParts, _EITHER] | None = None
    audio: AnswerReference | None = None
    name: _Nothing = None
    refusal: _Nothing = None
    annotations: _NoList = None
    function_call: _Nothing = None
    tool_calls: _NoList = None


Message = Annotated[SystemMessage | UserMessage | AssistantMessage, Field(discriminator="role")]


class AudioOptions(BaseModel):
    """How the answer shall sound."""

    model_config = STRICT

    voice: Voice
    format: ChatAudioFormat

    @property
    def voice_id(self) -> str:
        """The voice, in whichever form it was given."""
        return voice_id(self.voice)

    @property
    def encoding(self) -> AudioFormat:
        """The format as our encoders name it."""
        return "pcm" if self.format == "pcm16" else self.format


_MODALITIES = Field(json_schema_extra={"uniqueItems": True, "contains": {"const": "text"}})


class StreamOptions(BaseModel):
    """What a stream has beside the answer."""

    model_config = STRICT

    include_usage: bool | None = None
    include_obfuscation: _False = None


class TextFormat(BaseModel):
    """The only format of text there is."""

    model_config = STRICT

    type: Literal["text"]


class ChatBody(BaseModel):
    """What may be asked. Every field is honoured or refused; an unknown one is refused.

    Attributes:
        user, safety_identifier, prompt_cache_key, metadata: what clients note for themselves; no
            answer depends on it, here as at OpenAI's.
        max_completion_tokens, max_tokens: text tokens and frames of audio at most, together.
        others: OpenAI's, or as in ``engine_adapter.request.SpeechRequest``.
    """

    model_config = STRICT

    model: str
    messages: list[Message] = Field(min_length=1, max_length=_MOST_MESSAGES)
    modalities: Annotated[list[Literal["text", "audio"]], _MODALITIES] | None = None
    audio: AudioOptions | None = None
    max_completion_tokens: Annotated[int, Field(ge=1), INTEGRAL] | None = None
    max_tokens: Annotated[int, Field(ge=1), INTEGRAL] | None = None
    temperature: Temperature | None = None
    top_p: Probability | None = None
    seed: Seed | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    cfg_scale: Scale | None = None
    top_k: Count | None = None
    user: Encodable | None = None
    safety_identifier: Encodable | None = None
    prompt_cache_key: Encodable | None = None
    metadata: dict[Encodable, Encodable] | None = None
    n: Annotated[Literal[1] | None, _only(1)] = None
    tools: _NoList = None
    tool_choice: Annotated[Literal["none", "auto"] | None, _only("none", "auto")] = None
    parallel_tool_calls: Annotated[bool | None, _only(True, False)] = None
    functions: _NoList = None
    function_call: Annotated[Literal["none", "auto"] | None, _only("none", "auto")] = None
    response_format: Annotated[TextFormat | None, _only({"type": "text"})] = None
    stop: _NoList = None
    logprobs: _False = None
    top_logprobs: _Zero = None
    logit_bias: _NoMap = None
    frequency_penalty: _Zero = None
    presence_penalty: _Zero = None
    prediction: _Nothing = None
    reasoning_effort: _Nothing = None
    verbosity: _Nothing = None
    web_search_options: _Nothing = None
    service_tier: Annotated[Literal["auto", "default"] | None, _only("auto", "default")] = None
    store: _False = None
    moderation: _Nothing = None
    prompt_cache_options: _Nothing = None
    prompt_cache_retention: _Nothing = None

    @property
    def speaks(self) -> bool:
        """Whether audio is wanted."""
        return "audio" in (self.modalities or ())

    @property
    def limit(self) -> int | None:
        """Tokens of the answer at most."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def fault(self) -> tuple[str, str] | None:
        """What does not go with the rest, as in ``refuse_fault``; None if all does."""
        modalities = ["text"] if self.modalities is None else self.modalities
        if len(set(modalities)) != len(modalities) or "text" not in modalities:
            return "modalities", 'must be ["text"] or ["text", "audio"]'
        if self.speaks and self.audio is None:
            return "audio", "is required with audio among the modalities: a voice and a format"
        if not self.speaks and self.audio is not None:
            return "audio", "goes with audio among the modalities"
        if self.audio is not None and self.stream and self.audio.format != "pcm16":
            return "audio.format", "must be pcm16 in a stream"
        if self.stream_options is not None and not self.stream:
            return "stream_options", "goes with a stream"
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            return "max_tokens", "is the old name of max_completion_tokens; give one of them"
        if self.messages[-1].role != "user":
            return "messages", "the last message must be the user's"
        for index, message in enumerate(self.messages):
            if isinstance(message, AssistantMessage) and message.content is message.audio is None:
                return f"messages[{index}]", "has neither content nor audio"
        return None
