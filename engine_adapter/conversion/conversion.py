"""An official checkpoint to a model directory: first everything is checked, then it is written."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from engine_adapter.checkpoint import CONFIG_FILE, TOKENIZER_FILE, CheckpointError
from engine_adapter.conversion import shapes, vocabulary
from engine_adapter.conversion.backbones import BACKBONES, measured, served_config
from engine_adapter.conversion.errors import ConversionError, shortened
from engine_adapter.conversion.formats import FORMATS, HEAD, Format, Part, Shapes, looks_like
from engine_adapter.conversion.plan import Plan
from engine_adapter.conversion.recipe import read_recipe, speaking
from engine_adapter.conversion.shards import SHARD_BYTES, WRITABLE, Entry, write_shards
from engine_adapter.conversion.source import TorchCheckpoint
from engine_adapter.conversion.staging import check_is_free, staged
from engine_adapter.families import FAMILIES
from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.missing_parts import MissingPart, missing_parts
from engine_adapter.spec import StreamSpec
from engine_adapter.tokenizer import read_tokenizer

TRAINING_CONFIG = "config.yaml"
# Folder in the model directory and stem of the files of each part.
_FILES: dict[Part, tuple[str, str]] = {
    "model": ("", "model"),
    "audio_encoder": (AUDIO_ENCODER_FOLDER, "model"),
    "adaptor": (AUDIO_ENCODER_FOLDER, "adaptor"),
    "codec": (CODEC_FOLDER, "model"),
}
_HEARING: tuple[Part, ...] = ("audio_encoder", "adaptor")


@dataclass(frozen=True)
class Request:
    """What is to be converted.

    Attributes:
        family: a key of ``FORMATS``.
        checkpoint: the official file.
        dtype: of floating-point weights, the codec's excepted; None: as they are.
        training_config: OpusLM's ``config.yaml``; None: the one beside the checkpoint.
        inference_config: Bagpiper's ``inference.yaml``; None: see ``read_recipe``.
        backbone_config: a Hugging Face ``config.json``; None: the published backbone's.
        audio_config: the audio encoder's; None: Qwen3-Omni's.
        codec_config: of the codec within the checkpoint; None: the published X-Codec's.
        codec: a codec's directory, copied; None: the one within the checkpoint, if any.
        tokenizer: a directory with ``tokenizer.json``, or that file, copied.
        ssl: a directory as docs/generation.md describes it, copied.
    """

    family: str
    checkpoint: Path
    dtype: torch.dtype | None = None
    training_config: Path | None = None
    inference_config: Path | None = None
    backbone_config: Path | None = None
    audio_config: Path | None = None
    codec_config: Path | None = None
    codec: Path | None = None
    tokenizer: Path | None = None
    ssl: Path | None = None


@dataclass(frozen=True)
class Conversion:
    """A conversion that was checked, and can be written.

    Attributes:
        spec: the family's.
        source: the checkpoint.
        plan: where its tensors go.
        configs: content of the JSON files, by their path in the model directory.
        copies: what is copied, by its path in the model directory.
        dtype: see ``Request``.
    """

    spec: StreamSpec
    source: TorchCheckpoint
    plan: Plan
    configs: Mapping[str, Mapping[str, Any]]
    copies: Mapping[str, Path]
    dtype: torch.dtype | None

    @classmethod
    def prepare(cls, request: Request) -> Conversion:
        """Reads what is small and checks everything against everything; writes nothing.

        Raises:
            ConversionError: something is missing, damaged, or does not fit.
        """
        layout, spec = FORMATS[request.family], _spec(request)
        copies = _copies(request)
        source = TorchCheckpoint(request.checkpoint)
        try:
            _check_family(request.family, layout, spec, source)
            _fit_rows(layout, spec, source)
            training = _training_config(request, layout, spec)
            plan = Plan.of(list(source.tensors), layout)
            if request.codec is not None:
                plan = plan.without("codec", f"{request.codec} takes its place")
            configs, expected = _expected(request, spec, plan, source, training)
            problems = plan.problems(layout, source.shapes, expected)
            problems += _unwritable(plan, source)
            if source.others:
                problems.append(f"no tensors: {shortened(source.others)}")
            if problems:
                raise ConversionError("; ".join(problems))
        except ConversionError as error:
            raise ConversionError(f"{request.checkpoint}: {error}") from error
        return cls(spec, source, plan, configs, copies, request.dtype)

    @property
    def weight_bytes(self) -> int:
        """Of the tensors that are written."""
        return sum(entry.nbytes for part in self.plan.parts for entry in self._entries(part))

    def write(
        self, out: Path, advance: Callable[[int], object], shard_bytes: int = SHARD_BYTES
    ) -> list[MissingPart]:
        """Writes the model directory.

        Args:
            out: not there yet, or an empty directory. It is there again when it is complete.
            advance: is told how many bytes of weights have just been written.
            shard_bytes: see ``write_shards``.

        Returns:
            What it lacks.

        Raises:
            ConversionError: ``out`` is taken, or there is too little space.
        """
        check_is_free(out)
        copied = sum(_size(path) for path in self.copies.values())
        with staged(out, self.weight_bytes + copied) as directory:
            self.spec.save(directory)
            for part in self.plan.parts:
                folder, stem = _FILES[part]
                (directory / folder).mkdir(exist_ok=True)
                write_shards(directory / folder, stem, self._entries(part), advance, shard_bytes)
            for path, config in self.configs.items():
                (directory / path).write_text(json.dumps(config, indent=1) + "\n")
            for path, copied_from in self.copies.items():
                _copy(copied_from, directory / path)
            return missing_parts(directory, self.spec)

    def _entries(self, part: Part) -> list[Entry]:
        dtype = None if part == "codec" else self.dtype
        entries = []
        for target, name in self.plan.parts[part].items():
            tensor = self.source.tensors[name]
            pieces = partial(self.source.pieces, name, dtype)
            entries.append(Entry(target, tensor.shape, tensor.converted(dtype), pieces))
        return entries


def _spec(request: Request) -> StreamSpec:
    """Of the family, as this checkpoint is asked for speech."""
    spec, names = FAMILIES[request.family], FORMATS[request.family].recipes
    given = request.inference_config
    if not names:
        if given is not None:
            raise ConversionError(f"--inference-config: {request.family} has none")
        return spec
    try:
        return speaking(spec, read_recipe(given, request.checkpoint, names))
    except ConversionError as error:
        raise ConversionError(f"{given or names[0]}: {error}") from error


def _check_family(family: str, layout: Format, spec: StreamSpec, source: TorchCheckpoint) -> None:
    official = source.shapes
    found = looks_like(official)
    if found is None:
        raise ConversionError(
            f"is no checkpoint of a known family; it holds {shortened(list(official))}"
        )
    if found != family:
        raise ConversionError(f"looks like {found}, not {family}")
    ids = official.get(layout.embedding, (spec.vocab_size,))[0]
    if ids != spec.vocab_size:
        raise ConversionError(f"its vocabulary is {ids} ids, that of {family} is {spec.vocab_size}")


def _fit_rows(layout: Format, spec: StreamSpec, source: TorchCheckpoint) -> None:
    """Leaves rows of streams that the family does not have; puts a codec's head in its place."""
    for name, tensor in source.tensors.items():
        rule = layout.rule_for(name)
        if rule is not None and rule.per_stream and tensor.shape:
            source.tensors[name] = tensor.rows(0, spec.num_streams)
    head = layout.official_name("model", HEAD)
    own = next((name for name in layout.codec_heads if name in source.tensors), None)
    if own is not None and head in source.tensors:
        first = spec.streams[spec.codec_first_stream].first_id
        source.replace_rows(head, first, own)


def _training_config(request: Request, layout: Format, spec: StreamSpec) -> Mapping[str, Any]:
    if not layout.token_names:
        if request.training_config is not None:
            raise ConversionError(f"--config: {request.family} has none")
        return {}
    path = request.training_config or request.checkpoint.parent / TRAINING_CONFIG
    training = vocabulary.read_training_config(path)
    found = vocabulary.differences(training, spec, layout)
    if found:
        raise ConversionError(f"{path}: {'; '.join(found)}")
    return training


def _expected(
    request: Request,
    spec: StreamSpec,
    plan: Plan,
    source: TorchCheckpoint,
    training: Mapping[str, Any],
) -> tuple[dict[str, Mapping[str, Any]], dict[Part, Shapes]]:
    """The configurations that are written, and the tensors that they ask for."""
    given = _read_json(request.backbone_config)
    config = served_config(
        BACKBONES[request.family],
        given,
        measured(plan.shapes("model", source.shapes)),
        spec.vocab_size,
        _dtype(plan, source, request.dtype),
    )
    positions = (training.get("transformer_conf") or {}).get("n_ctx")
    if positions is not None:
        config["max_position_embeddings"] = int(positions)
    configs: dict[str, Mapping[str, Any]] = {CONFIG_FILE: config}
    expected: dict[Part, Shapes] = {"model": shapes.model_shapes(config, spec)}
    if any(part in plan.parts for part in _HEARING):
        from vocoder_service.log_mel import BAGPIPER_FEATURES, SETTINGS_FILE  # slow to import

        audio = _audio_config(_read_json(request.audio_config))
        configs[f"{AUDIO_ENCODER_FOLDER}/{CONFIG_FILE}"] = {
            "architectures": ["Qwen3OmniMoeAudioEncoder"],
            **audio,
        }
        configs[f"{AUDIO_ENCODER_FOLDER}/{SETTINGS_FILE}"] = {
            **BAGPIPER_FEATURES,
            "feature_size": audio.get("num_mel_bins", BAGPIPER_FEATURES["feature_size"]),
        }
        expected["audio_encoder"] = shapes.audio_encoder_shapes(audio)
        expected["adaptor"] = shapes.adaptor_shapes(audio, config["hidden_size"])
    if "codec" in plan.parts:
        codec = shapes.xcodec_config(_read_json(request.codec_config))
        configs[f"{CODEC_FOLDER}/{CONFIG_FILE}"] = codec
        expected["codec"] = shapes.xcodec_shapes(codec)
    return configs, expected


def _dtype(plan: Plan, source: TorchCheckpoint, wanted: torch.dtype | None) -> torch.dtype:
    """Of the backbone: that of most of its elements."""
    elements: Counter[torch.dtype] = Counter()
    for name in plan.parts.get("model", {}).values():
        tensor = source.tensors[name]
        elements[tensor.converted(wanted)] += tensor.elements
    return elements.most_common(1)[0][0] if elements else torch.float32


def _audio_config(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The audio encoder's, out of a configuration of the whole model or of it alone."""
    config = given or shapes.AUDIO_ENCODER_CONFIG
    config = config.get("thinker_config", config)
    config = config.get("audio_config", config)
    return {**config, "model_type": shapes.AUDIO_ENCODER_TYPE}


def _unwritable(plan: Plan, source: TorchCheckpoint) -> list[str]:
    names = [name for tensors in plan.parts.values() for name in tensors.values()]
    found = [
        f"{name} is {source.tensors[name].dtype}"
        for name in names
        if source.tensors[name].dtype not in WRITABLE
    ]
    return [f"of a type that is not served: {shortened(found)}"] if found else []


def _copies(request: Request) -> dict[str, Path]:
    """What is copied, by its path in the model directory."""
    copies = {}
    for folder, path in ((CODEC_FOLDER, request.codec), (SSL_FOLDER, request.ssl)):
        if path is not None:
            if not path.is_dir():
                raise ConversionError(f"{path}: no such directory")
            copies[folder] = path
    if request.tokenizer is not None:
        path = request.tokenizer
        file = path / Path(TOKENIZER_FILE).name if path.is_dir() else path
        text = FAMILIES[request.family].text
        assert text is not None  # every family that is converted reads text
        try:
            read_tokenizer(file, text)
        except CheckpointError as error:
            raise ConversionError(str(error)) from error
        copies[TOKENIZER_FILE] = file
    return copies


def _copy(source: Path, target: Path) -> None:
    """A file, or a folder's files; links are followed, since Hugging Face's caches are links."""
    target.parent.mkdir(exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
    else:
        shutil.copyfile(source, target)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _read_json(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConversionError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise ConversionError(f"{path}: not a JSON object")
    return data
