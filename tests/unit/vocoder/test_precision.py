"""Nothing that decodes or encodes rounds to TensorFloat-32, in whatever thread."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from vocoder_service.audio_tower import AudioTower
from vocoder_service.codec import load_codec
from vocoder_service.encoder import load_encoder
from vocoder_service.ssl_units import SslTokenizer


@pytest.fixture
def _fast() -> Iterator[None]:
    """Both switches on, as a library might leave them; afterwards as they were."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize(
    "load",
    [load_codec, load_encoder, SslTokenizer.load, lambda path: AudioTower.load(path, 64)],
    ids=["codec", "encoder", "units", "tower"],
)
def test_what_is_loaded_computes_in_float32(load: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):  # it is settled before a file is read
        load(tmp_path)
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32
