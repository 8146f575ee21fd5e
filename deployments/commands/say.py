"""Has a running service speak a text and writes the audio to a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from deployments.commands import CommandError, add_url

if TYPE_CHECKING:
    import httpx

HELP = "speak a text through a running service"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, help="file to write; its ending says the format"
    )
    parser.add_argument("--model", help="default: the service's first")
    parser.add_argument("--voice", help="default: the model's first")
    parser.add_argument("--cfg-scale", type=float, help="guidance, 1 is off; default: the model's")
    parser.add_argument("--seed", type=int, help="default: one is drawn")
    add_url(parser)


def run(options: argparse.Namespace) -> int:
    import httpx

    from deployments.client import TIMEOUT, authorization, checked, failures_told

    _format(options.output)
    with (
        failures_told(options.url),
        httpx.Client(base_url=options.url, timeout=TIMEOUT, headers=authorization()) as client,
    ):
        body = _body(options, client)
        answer = checked(client.post("/v1/audio/speech", json=body))
    try:
        options.output.write_bytes(answer.content)
    except OSError as error:
        raise CommandError(f"{options.output}: {error.strerror}") from error
    headers = answer.headers
    print(f"{options.output}: seed {headers['x-seed']}, finished by {headers['x-finish-reason']}")
    return 0


def _body(options: argparse.Namespace, client: httpx.Client) -> dict[str, Any]:
    from deployments.client import card_of, checked

    model, voice = options.model, options.voice
    if model is None or voice is None:
        card = card_of(checked(client.get("/v1/models")).json()["data"], model)
        model, voice = card["id"], voice or card["voices"][0]
    optional = {"cfg_scale": options.cfg_scale, "seed": options.seed}
    return {
        "model": model,
        "voice": voice,
        "input": options.text,
        "response_format": _format(options.output),
        "stream": False,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _format(output: Path) -> str:
    from deployments.audio.formats import AudioFormat

    name = output.suffix.removeprefix(".").lower()
    formats: tuple[str, ...] = get_args(AudioFormat)
    if name not in formats:
        raise CommandError(f"{output}: must end with one of .{', .'.join(formats)}")
    return name
