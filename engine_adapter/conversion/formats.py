"""What the official checkpoints hold, as data: a family's tensors, and where each goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine_adapter.checkpoint import STREAM_EMBEDDING
from engine_adapter.families import FAMILIES

Part = Literal["model", "audio_encoder", "adaptor", "codec"]
Shapes = Mapping[str, tuple[int, ...]]
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@dataclass(frozen=True)
class Rule:
    """Where the tensors under ``source`` go.

    Attributes:
        source: an official name, or a prefix if it ends in a dot.
        part: of the model directory; None: dropped.
        target: what takes the place of ``source`` in the name.
        per_stream: it has a row for every stream of the largest model of its kind; only those
            of the family's streams are taken.
        reason: why they are dropped.
    """

    source: str
    part: Part | None
    target: str = ""
    per_stream: bool = False
    reason: str = ""

    def target_of(self, name: str) -> str | None:
        """The name in the model directory; None: the rule is not about this tensor."""
        if name == self.source or (self.source.endswith(".") and name.startswith(self.source)):
            return self.target + name.removeprefix(self.source)
        return None


@dataclass(frozen=True)
class Format:
    """An official checkpoint.

    Attributes:
        rules: the first that is about a tensor holds.
        embedding: official name of the embedding of all ids.
        codec_heads: official names of a head of its own for the codec's ids, which some
            checkpoints have; the rows of the first there is take the place of theirs in the head
            of all ids.
        token_names: for families with a ``config.yaml``: what the ids that the family's spec
            uses are called in its ``token_list``.
        recipes: for families whose checkpoints are asked for speech in different ways: names of
            the file beside them that tells how.
    """

    rules: tuple[Rule, ...]
    embedding: str
    codec_heads: tuple[str, ...] = ()
    token_names: Mapping[int, str] = field(default_factory=dict)
    recipes: tuple[str, ...] = ()

    def rule_for(self, name: str) -> Rule | None:
        """The rule about a tensor, if there is one."""
        return next((rule for rule in self.rules if rule.target_of(name) is not None), None)

    def official_name(self, part: Part, target: str) -> str:
        """Of the tensor that becomes ``target`` in a part of the model directory."""
        for rule in sorted(self.rules, key=lambda rule: rule.source.endswith(".")):
            whole = not rule.source.endswith(".")
            if rule.part == part and (
                target == rule.target if whole else target.startswith(rule.target)
            ):
                return rule.source + target.removeprefix(rule.target)
        raise ValueError(f"no tensor becomes {target!r} of {part}")


_BAGPIPER = Format(
    rules=(
        Rule("model.", "model", "model."),
        Rule("lm_head.weight", "model", HEAD),
        Rule("stream_emb.weight", "model", STREAM_EMBEDDING),
        Rule("multimodal_io_dict.continuous_audio.model.audio_tower.", "audio_encoder"),
        Rule("adaptor.continuous_audio.", "adaptor"),
        Rule("multimodal_io_dict.discrete_audio.codec_model.", "codec"),
        Rule("vocab_weight", None, reason="weights of the training loss"),
    ),
    embedding="model.embed_tokens.weight",
    recipes=("inference.yaml", "inference_audio.yaml"),
)

_OPUSLM_RULES = (
    Rule("corelm.emb.weight", "model", EMBEDDING),
    Rule("corelm.decoders.model.", "model", "model."),
    Rule("corelm.lm_head.weight", "model", HEAD),
    Rule("corelm.head_emb.weight", "model", STREAM_EMBEDDING, per_stream=True),
    Rule("criterion.", None, reason="part of the training loss"),
)
# The loss has the head, too; what ESPnet merges into the head of all ids is deleted in the model.
_CODEC_HEADS = ("corelm.aux_lm_head.weight", "criterion.aux_lm_head.weight")
_OPUSLM_TOKENS = {
    0: "<pad>",
    5: "<sos/eos>",
    34: "<codec_ssl_start/end>",
    35: "<text_bpe_start/end>",
    37: "<spk_start/end>",
}

FORMATS: dict[str, Format] = {
    "bagpiper": _BAGPIPER,
    "opuslm": Format(
        _OPUSLM_RULES,
        "corelm.emb.weight",
        _CODEC_HEADS,
        {
            **_OPUSLM_TOKENS,
            64: "<textlm_task>",
            80: "<codec_ssl_asr_task>",
            81: "<codec_ssl_tts_task>",
            82: "<codec_ssl_plain_tts_task>",
        },
    ),
    "opuslm-dialogue": Format(
        _OPUSLM_RULES,
        "corelm.emb.weight",
        _CODEC_HEADS,
        {
            **_OPUSLM_TOKENS,
            8: "<system_prompt>",
            9: "<user_input>",
            10: "<assistant_output>",
            88: "<text_dialogue_task>",
            89: "<audio_dialogue_task>",
        },
    ),
}


def looks_like(shapes: Shapes) -> str | None:
    """The family that official tensors are of; None: of none.

    Families with the same names are told apart by the size of their vocabulary.
    """

    def likeness(family: str) -> tuple[int, bool]:
        known = sum(FORMATS[family].rule_for(name) is not None for name in shapes)
        rows = shapes.get(FORMATS[family].embedding, (0,))[0]
        return known, rows == FAMILIES[family].vocab_size

    best = max(FORMATS, key=likeness)
    return best if 2 * likeness(best)[0] > len(shapes) else None
