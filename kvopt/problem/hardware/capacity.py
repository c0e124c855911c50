"""How many tokens of KV cache a machine has room for."""

from __future__ import annotations

from fractions import Fraction

from kvopt.errors import InvalidInput
from kvopt.problem.hardware.presets import ModelShape
from kvopt.problem.requests import checked_integer

SHARE = Fraction(9, 10)
"""Of the memory, for weights and cache, where nothing else is asked for."""


def copies(shape: ModelShape, gpus: int) -> Fraction:
    """Return how many GPUs hold the same keys: several where there are more than heads of keys."""
    return Fraction(gpus, min(gpus, shape.kv_heads))


def capacity(shape: ModelShape, memory: int, gpus: int, fraction: Fraction) -> int:
    """Return the tokens that fit beside the weights, rounded down.

    Parameters
    ----------
    shape
        The model.
    memory
        Bytes of one GPU.
    gpus
        How many hold the model together.
    fraction
        Share of the memory that weights and cache may take; the rest is for activations.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from kvopt.problem.hardware.presets import GIGABYTE, MODELS
    >>> capacity(MODELS["jaillet-2025-v1"], 80 * GIGABYTE, 2, Fraction(1))
    7629
    """
    checked_integer(memory, "gpu-memory", 1)
    checked_integer(gpus, "gpus", 1)
    if not 0 < fraction <= 1:
        raise InvalidInput(f"must be above 0 and at most 1, got {fraction}", field="fraction")
    total = gpus * memory * fraction
    tokens = (total - shape.weight_bytes) // (shape.kv_bytes * copies(shape, gpus))
    if tokens < 1:
        reason = f"has no room: the weights take {shape.weight_bytes:,} bytes of {int(total):,}"
        raise InvalidInput(reason, field=shape.name)
    return tokens
