"""Where a codec, or an SSL model, says what it is. Loads nothing."""

import json
from pathlib import Path
from typing import Any

ESPNET_CONFIG = "config.yaml"


def find_configuration(directory: Path) -> Path | None:
    """``config.json`` as of transformers; else the one ``config.yaml`` in ``directory`` or below,
    as in a model that ESPnet published. None: there is neither, or there are several."""
    file = directory / "config.json"
    if file.is_file():
        return file
    of_espnet = list(directory.rglob(ESPNET_CONFIG))
    return of_espnet[0] if len(of_espnet) == 1 else None


def model_type(file: Path) -> Any:
    """What a ``config.json`` as of transformers calls its model.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no JSON object.
    """
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{file}: not a JSON object")
    return config.get("model_type")
