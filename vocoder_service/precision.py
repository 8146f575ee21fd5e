"""Float32 that is float32, also on GPUs."""

import torch


def use_full_precision() -> None:
    """Switches TensorFloat-32, cuDNN's default, off, for the process and for good.

    With it the pieces of a stream would differ from its one-shot decode, and the codes of a clip
    from those that a model was trained with. Whatever loads a codec or an encoder calls this: the
    switch belongs to the process, so threads that set and restored it would do so for each other.
    """
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
