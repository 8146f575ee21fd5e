"""Has a running service speak a text and writes the audio to a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from deployments.commands import CommandError

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
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="default: %(default)s")


def run(options: argparse.Namespace) -> int:
    import httpx

    _format(options.output)
    # Generation may take long; whether something listens is known at once.
    timeout = httpx.Timeout(None, connect=5)
    try:
        with httpx.Client(base_url=options.url, timeout=timeout) as client:
            body = _body(options, client)
            answer = _checked(client.post("/v1/audio/speech", json=body))
    except httpx.ConnectError as error:
        raise CommandError(
            f"nothing listens at {options.url}; start it with: speechlm serve"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandError(f"{options.url}: {error or type(error).__name__}") from error
    try:
        options.output.write_bytes(answer.content)
    except OSError as error:
        raise CommandError(f"{options.output}: {error.strerror}") from error
    headers = answer.headers
    print(f"{options.output}: seed {headers['x-seed']}, finished by {headers['x-finish-reason']}")
    return 0


def _body(options: argparse.Namespace, client: httpx.Client) -> dict[str, Any]:
    model, voice = options.model, options.voice
    if model is None or voice is None:
        cards = _checked(client.get("/v1/models")).json()["data"]
        card = next((card for card in cards if model in (None, card["id"])), None)
        if card is None:
            raise CommandError(f"there is no model {model!r}")
        model, voice = card["id"], voice or card["voices"][0]
    optional = {"cfg_scale": options.cfg_scale, "seed": options.seed}
    return {
        "model": model,
        "voice": voice,
        "input": options.text,
        "response_format": _format(options.output),
        **{key: value for key, value in optional.items() if value is not None},
    }


def _format(output: Path) -> str:
    from deployments.audio.formats import AudioFormat

    name = output.suffix.removeprefix(".").lower() or "wav"
    formats: tuple[str, ...] = get_args(AudioFormat)
    if name not in formats:
        raise CommandError(f"{output}: must end with one of .{', .'.join(formats)}")
    return name


def _checked(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text.strip()
    raise CommandError(f"the service answered {response.status_code}: {message}")
