"""A model's files, from the ``path`` of its settings, and whether its settings fit them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from deployments.models.audio import ModelAudio
from deployments.settings import ModelSettings
from engine_adapter.engine_config import SettingError
from engine_adapter.families import FAMILIES
from engine_adapter.fitting import check
from engine_adapter.model_files import CONFIG_FILE, read_json
from engine_adapter.spec import SpecError, StreamSpec
from engine_adapter.wholeness import check_whole

_TINY = "tiny:"


def find(model: ModelSettings, index: int) -> tuple[Path, StreamSpec]:
    """A model's directory and spec, after a check of its files and of its engine's settings.

    Args:
        index: of the model among the settings' ``models``.

    Raises:
        ValueError: there is no such model or family, it is not complete, or a setting does not
            fit it; the message begins with the setting's name.
    """
    try:
        directory = locate(model.path)
        spec = StreamSpec.load(directory)
        backbone = read_json(directory / CONFIG_FILE)
        check_whole(directory, backbone, spec)
        ModelAudio.of(directory)
        check(model.engine.config(directory), backbone, spec, on_cpu=not model.engine.gpus)
    except SettingError as error:
        raise ValueError(f"models.{index}.engine.{error}") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"models.{index}.path: {error}") from error
    return directory, spec


def default_cache() -> Path:
    """Where models that are made here are kept, under the current directory."""
    return Path(".cache/models")


def locate(path: str, cache: Path | None = None) -> Path:
    """The absolute directory of a model; a ``tiny:FAMILY`` is made on first use, and anew
    where its family is no longer what it was.

    Raises:
        FileNotFoundError: there is no such directory.
        ValueError: there is no such family.
    """
    if path.startswith(_TINY):
        return _tiny(path.removeprefix(_TINY), default_cache() if cache is None else cache)
    directory = Path(path).resolve()
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: no such model directory")
    return directory


def _tiny(family: str, cache: Path) -> Path:
    directory = (cache / f"{family}-tiny").resolve()
    if _is_of(family, directory):
        return directory
    from engine_adapter.tiny import make_tiny  # brings torch, which is slow to import

    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".gitignore").write_text("*\n")
    # In one step, so that nobody sees half a model; whoever comes second loses nothing.
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{family}-") as scratch:
        made = make_tiny(family, Path(scratch) / "model")
        if not _is_of(family, directory):
            with suppress(FileNotFoundError):
                os.rename(directory, Path(scratch) / "outdated")
        try:
            os.rename(made, directory)
        except OSError:
            if not directory.is_dir():
                raise
    return directory


def _is_of(family: str, directory: Path) -> bool:
    try:
        return StreamSpec.load(directory) == FAMILIES.get(family)
    except SpecError:
        return False
