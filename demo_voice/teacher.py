"""The teacher: flite's statistical voices, through its C library.

flite is free software of Carnegie Mellon University (a BSD-like licence); its output may be used
for any purpose. TEACHER.md says why it was chosen.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
from numpy.typing import NDArray

from demo_voice.recipe import SAMPLE_RATE

VOICES = ("rms", "slt")
"""A man's and a woman's voice of 16 kHz."""

_LEAD, _TRAIL = int(0.05 * SAMPLE_RATE), int(0.12 * SAMPLE_RATE)
_SILENCE = 200  # of int16: below it nothing is heard


class _Wave(ctypes.Structure):
    """``cst_wave`` of flite's cst_wave.h."""

    _fields_ = (
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    )


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libflite.so.1")
    except OSError as error:
        raise FileNotFoundError(
            "flite's library is missing (on Debian: apt-get install flite)"
        ) from error
    library.flite_text_to_wave.restype = ctypes.POINTER(_Wave)
    library.flite_text_to_wave.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    library.delete_wave.argtypes = (ctypes.POINTER(_Wave),)
    library.flite_init()
    return library


@cache
def _voice(name: str) -> ctypes.c_void_p:
    if name not in VOICES:
        raise ValueError(f"voice {name!r} is not one of {', '.join(VOICES)}")
    _library()
    register = getattr(ctypes.CDLL(f"libflite_cmu_us_{name}.so.1"), f"register_cmu_us_{name}")
    register.restype = ctypes.c_void_p
    register.argtypes = (ctypes.c_char_p,)
    return ctypes.c_void_p(register(None))


def speak(text: str, voice: str) -> NDArray[np.int16]:
    """Speech at 16 kHz, ``[samples]``; silence before and after is cut to a short rest.

    The same text always gives the same samples. Not for several threads at a time.

    Raises:
        ValueError: no such voice, or nothing in the text can be spoken.
        FileNotFoundError: flite is not installed.
    """
    ctypes.CDLL(None).srand(1)  # flite draws the noise in its excitation from there
    pointer = _library().flite_text_to_wave(text.encode("ascii", "ignore"), _voice(voice))
    if not pointer:
        raise ValueError(f"flite cannot speak {text!r}")
    try:
        wave = pointer.contents
        if (wave.sample_rate, wave.num_channels) != (SAMPLE_RATE, 1):
            raise ValueError(f"flite gave {wave.num_channels} x {wave.sample_rate} Hz")
        samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).astype(np.int16)
    finally:
        _library().delete_wave(pointer)
    return trim(samples, text)


def trim(samples: NDArray[np.int16], text: str = "") -> NDArray[np.int16]:
    """Cuts the silence at both ends down to 50 ms before and 120 ms after.

    Raises:
        ValueError: all is silent.
    """
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > _SILENCE)
    if loud.size == 0:
        raise ValueError(f"silence for {text!r}")
    return samples[max(0, loud[0] - _LEAD) : loud[-1] + 1 + _TRAIL]
