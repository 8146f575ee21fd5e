"""Generates for every request of a file, without HTTP and without Ray.

Each input line is a JSON object: id; text or prompt_ids; and optionally voice, output,
cfg_scale, unconditional_ids, seed, temperature, top_k, top_p, max_frames, max_text_tokens. A
line that cannot be served gets an error in its output line and does not disturb the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployments.commands import CommandError

if TYPE_CHECKING:
    from engine_adapter.engine import EngineConfig, SpeechEngine
    from vocoder_service.vocoder import Vocoder

_WAV_DIR_HELP = (
    "write ID.wav for every answer with audio; in the name of an ID that has anything but letters, "
    "digits and . _ -, or more than a hundred of them, that becomes _ and a digest follows"
)
HELP = "generate for a file of requests, without a service"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="model directory, or tiny:FAMILY")
    parser.add_argument("--requests", required=True, type=Path, help="JSON lines to read")
    parser.add_argument("--output", required=True, type=Path, help="JSON lines to write")
    parser.add_argument("--wav-dir", type=Path, help=_WAV_DIR_HELP)
    parser.add_argument("--stats", type=Path, help="write counters of the whole run")
    parser.add_argument("--metrics", type=Path, help="write them in Prometheus's text format")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--max-rows", type=int, default=64, help="rows of a step")
    parser.add_argument("--kv-blocks", type=int, help="size of the KV cache")
    parser.add_argument("--max-batched-tokens", type=int, help="tokens of a step")
    parser.add_argument("--max-model-len", type=int, help="rows of a request")
    parser.add_argument("--no-prefix-cache", action="store_true")


def run(options: argparse.Namespace) -> int:
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from deployments.models.directory import locate
    from engine_adapter.engine import EngineConfig
    from engine_adapter.request import EngineUnavailable

    if not options.requests.is_file():
        raise CommandError(f"{options.requests}: no such file")
    try:
        config = EngineConfig(
            model=str(locate(options.model)),
            dtype=options.dtype,
            max_rows=options.max_rows,
            kv_blocks=options.kv_blocks,
            max_batched_tokens=options.max_batched_tokens,
            max_model_len=options.max_model_len,
            prefix_cache=not options.no_prefix_cache,
        )
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from error
    try:
        asyncio.run(_generate(options, config))
    except (OSError, EngineUnavailable) as error:
        raise CommandError(str(error)) from error
    return 0


async def _generate(options: argparse.Namespace, config: EngineConfig) -> None:
    from tqdm import tqdm

    from deployments.offline import Answers

    for written in filter(None, (options.output, options.stats, options.metrics)):
        if written.exists() and written.samefile(options.requests):
            raise CommandError(f"{written}: would overwrite the requests")
        if not written.absolute().parent.is_dir():
            raise CommandError(f"{written.parent}: no such directory")
    if options.wav_dir is not None:
        options.wav_dir.mkdir(parents=True, exist_ok=True)
    with options.requests.open("rb") as requests, ExitStack() as stack:
        lines = sum(1 for line in requests if line.strip())
        requests.seek(0)
        engine, vocoder = _start(config, wants_audio=options.wav_dir is not None)
        try:
            # Only now: a start that fails leaves an earlier output as it is.
            output = stack.enter_context(options.output.open("w"))
            answers = Answers(engine, vocoder, options.wav_dir)
            began = time.perf_counter()
            with tqdm(total=lines, unit="request", disable=None) as progress:
                async for record in answers.answer(requests):
                    output.write(json.dumps(record) + "\n")
                    output.flush()
                    progress.update()
            seconds = time.perf_counter() - began
            stats = {**await engine.drained(), "frames": answers.frames, "wall_seconds": seconds}
        finally:
            engine.shutdown()
    if answers.failed:
        print(f"{answers.failed} of {lines} requests failed: see their error", file=sys.stderr)
    if options.stats is not None:
        options.stats.write_text(json.dumps(stats, indent=1) + "\n")
    if options.metrics is not None:
        options.metrics.write_text(_metrics(options.model, engine, stats))


def _metrics(model: str, engine: SpeechEngine, stats: dict[str, Any]) -> str:
    from deployments.metrics import emit
    from deployments.metrics.engine_figures import EngineFigures
    from deployments.metrics.sinks import PrometheusSink

    sink = PrometheusSink()
    with emit.using(sink, model=model):
        EngineFigures(engine.config.max_rows, engine.kv_blocks).emit(stats)
    return sink.text()


def _start(config: EngineConfig, *, wants_audio: bool) -> tuple[SpeechEngine, Vocoder | None]:
    """
    Raises:
        CommandError: the model is not complete, or vLLM does not start.
    """
    from engine_adapter.checkpoint import ModelDirectory
    from engine_adapter.engine import SpeechEngine
    from vocoder_service.codec import load_codec
    from vocoder_service.vocoder import Vocoder

    try:
        vocoder = None
        if wants_audio:
            model = ModelDirectory.open(config.model)
            codebooks = model.spec.num_streams - model.spec.codec_first_stream
            vocoder = Vocoder(load_codec(model.codec, num_codebooks=codebooks))
        return SpeechEngine(config), vocoder
    except (ValueError, OSError, RuntimeError) as error:
        raise CommandError(f"{config.model}: {error}") from error
