"""Makes a model directory of an official ESPnet checkpoint (docs/convert.md)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from deployments.commands import CommandError

if TYPE_CHECKING:
    from engine_adapter.conversion.conversion import Conversion, Request

HELP = "make a model directory of an official checkpoint"
# As in engine_adapter.conversion.formats, which would bring torch.
_FAMILIES = ("bagpiper", "opuslm", "opuslm-dialogue")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--family", required=True, choices=_FAMILIES)
    parser.add_argument("--checkpoint", required=True, type=Path, help="the .pt or .pth file")
    parser.add_argument("--out", required=True, type=Path, help="directory to write")
    parser.add_argument("--tokenizer", type=Path, help="directory with the tokenizer.json to copy")
    parser.add_argument("--codec", type=Path, help="directory of the codec to copy")
    parser.add_argument("--ssl", type=Path, help="directory of the SSL model to copy")
    parser.add_argument(
        "--config", type=Path, help="OpusLM's config.yaml; default: beside the checkpoint"
    )
    parser.add_argument(
        "--inference-config",
        type=Path,
        help="Bagpiper's inference.yaml; default: beside the checkpoint, or the pretrained one's",
    )
    parser.add_argument(
        "--backbone-config",
        type=Path,
        help="config.json of the backbone; default: the published one's",
    )
    parser.add_argument(
        "--audio-config",
        type=Path,
        help="config.json with the audio encoder's; default: Qwen3-Omni's",
    )
    parser.add_argument(
        "--codec-config",
        type=Path,
        help="config.json of the codec within the checkpoint; default: the published X-Codec's",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16", "bfloat16"),
        help="of the weights; default: as they are",
    )


def run(options: argparse.Namespace) -> int:
    import torch

    from engine_adapter.conversion.conversion import Conversion, Request
    from engine_adapter.conversion.errors import ConversionError
    from engine_adapter.conversion.staging import check_is_free

    request = Request(
        family=options.family,
        checkpoint=options.checkpoint,
        dtype=None if options.dtype is None else getattr(torch, options.dtype),
        training_config=options.config,
        inference_config=options.inference_config,
        backbone_config=options.backbone_config,
        audio_config=options.audio_config,
        codec_config=options.codec_config,
        codec=options.codec,
        tokenizer=options.tokenizer,
        ssl=options.ssl,
    )
    try:
        check_is_free(options.out)
        conversion = Conversion.prepare(request)
        _check_audio_models(request, conversion)
        _write(conversion, options.out)
    except (ConversionError, OSError) as error:
        raise CommandError(str(error)) from error
    return 0


def _check_audio_models(request: Request, conversion: Conversion) -> None:
    """
    Raises:
        CommandError: a codec or an SSL model cannot be loaded, or is not what the family needs.
    """
    from deployments.models.report import check_codec, check_ssl

    checks = ((check_codec, request.codec), (check_ssl, request.ssl))
    for check, directory in checks:
        if directory is not None:
            try:
                check(directory, conversion.spec)
            except (ValueError, OSError, RuntimeError, KeyError) as error:
                raise CommandError(f"{directory}: {error}") from error


def _write(conversion: Conversion, out: Path) -> None:
    from tqdm import tqdm

    from deployments.models.report import SPEECH

    size = conversion.weight_bytes
    with tqdm(total=size, unit="B", unit_scale=True, disable=None) as progress:
        missing = conversion.write(out, progress.update)
    parts = conversion.plan.parts
    print(f"{out}: {sum(map(len, parts.values()))} tensors, {size / 1e9:.2f} GB")
    speech = SPEECH[conversion.spec.speech_output]
    print(f"speech: {speech}; guidance {conversion.spec.cfg_scale:g}")
    for reason, names in conversion.plan.dropped.items():
        print(f"left out: {len(names)} tensors: {reason}")
    for part in missing:
        print(f"missing: {part.path}: {part.cost}")
