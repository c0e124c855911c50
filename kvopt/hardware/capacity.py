"""How many tokens of KV cache a machine has room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from kvopt.errors import InvalidInput, unknown_name
from kvopt.model.instance import checked_integer

GIGABYTE = 10**9
"""As papers and data sheets count: 80 GB are 80 * 10^9 bytes."""

OBSERVED_MEMORY = 16_492
"""Tokens that jaillet-2025-v2 reports as observed for Llama-2-70B on two A100."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What of a model decides the size of its weights and of its cache.

    Parameters
    ----------
    name
        What it is called.
    parameters, layers, kv_heads, head_size
        As published; ``kv_heads`` counts heads of keys, which may be fewer than of queries.
    bytes
        Of a weight and of a cached number.
    """

    name: str
    parameters: int
    layers: int
    kv_heads: int
    head_size: int
    bytes: int = 2

    def __post_init__(self) -> None:
        for field in ("parameters", "layers", "kv_heads", "head_size", "bytes"):
            checked_integer(getattr(self, field), field.replace("_", "-"), 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self.parameters * self.bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of a cached token: a key and a value for each layer and head."""
        return 2 * self.layers * self.kv_heads * self.head_size * self.bytes


@dataclass(frozen=True, slots=True)
class Gpu:
    """Memory in bytes and its bandwidth in bytes a second, from the data sheet."""

    name: str
    memory: int
    bandwidth: int


Preset = TypeVar("Preset", ModelShape, Gpu)

MODELS = {
    shape.name: shape
    for shape in (
        ModelShape("llama-2-7b", 6_738_415_616, 32, 32, 128),
        ModelShape("llama-2-13b", 13_015_864_320, 40, 40, 128),
        ModelShape("llama-2-70b", 68_976_648_192, 80, 8, 128),
        ModelShape("llama-3-8b", 8_030_261_248, 32, 8, 128),
        ModelShape("llama-3-70b", 70_553_706_496, 80, 8, 128),
        ModelShape("mistral-7b", 7_241_732_096, 32, 8, 128),
        # The formula of the paper: 70 * 10^9 parameters, and every head with its own keys.
        ModelShape("jaillet-2025-v1", 70 * 10**9, 80, 64, 128),
    )
}
GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("a10-24gb", 24 * GIGABYTE, 600 * GIGABYTE),
        Gpu("a100-40gb", 40 * GIGABYTE, 1_555 * GIGABYTE),
        Gpu("a100-80gb", 80 * GIGABYTE, 2_039 * GIGABYTE),
        Gpu("h100-80gb", 80 * GIGABYTE, 3_350 * GIGABYTE),
        Gpu("h200-141gb", 141 * GIGABYTE, 4_800 * GIGABYTE),
        Gpu("l4-24gb", 24 * GIGABYTE, 300 * GIGABYTE),
    )
}


def preset(known: Mapping[str, Preset], name: str, option: str) -> Preset:
    """Return one of `MODELS` or `GPUS` by its name, which an option gave."""
    if name not in known:
        raise unknown_name(name, known, option)
    return known[name]


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
    >>> capacity(MODELS["jaillet-2025-v1"], 80 * GIGABYTE, 2, Fraction(1))
    7629
    """
    checked_integer(memory, "gpu-memory", 1)
    checked_integer(gpus, "gpus", 1)
    if not 0 < fraction <= 1:
        raise InvalidInput(f"must be above 0 and at most 1, got {fraction}", field="fraction")
    total = gpus * memory * fraction
    tokens = (total - shape.weight_bytes) // shape.kv_bytes
    if tokens < 1:
        reason = f"has no room: the weights take {shape.weight_bytes:,} bytes of {int(total):,}"
        raise InvalidInput(reason, field=shape.name)
    return tokens
