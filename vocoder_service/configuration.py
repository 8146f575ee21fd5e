"""Where a codec, or an SSL model, says what it is. Loads nothing."""

from pathlib import Path

ESPNET_CONFIG = "config.yaml"


def find_configuration(directory: Path) -> Path | None:
    """``config.json`` as of transformers; else the one ``config.yaml`` in ``directory`` or below,
    as in a model that ESPnet published. None: there is neither, or there are several."""
    file = directory / "config.json"
    if file.is_file():
        return file
    of_espnet = list(directory.rglob(ESPNET_CONFIG))
    return of_espnet[0] if len(of_espnet) == 1 else None
