"""Models and GPUs by name, with the figures for sizes of caches and rooflines.

``presets.toml`` has their figures and sources.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from kvopt.errors import InvalidInput, unknown_name
from kvopt.problem.requests import checked_integer

GIGABYTE = 10**9
"""Unit of papers and data sheets: 80 GB are 80 * 10^9 bytes."""

_TERA = 10**12
SHARE = Fraction(9, 10)
"""Default share of the memory for weights and cache."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Figures of a model that decide the size of weights and cache, and the time of a round.

    Parameters
    ----------
    name
        Its name.
    parameters, layers, kv_heads, head_size
        Published numbers; ``kv_heads`` counts heads of keys, perhaps fewer than of queries.
    bytes
        Bytes of a weight and of a cached number.
    hidden
        Numbers of a token between two layers.
    table
        Parameters of the table of tokens, of which a round reads a row for each token.
    active
        Parameters that a token passes, ``table`` included; fewer than all in a mixture of experts.
    source
        Source of the figures.
    """

    name: str
    parameters: int
    layers: int
    kv_heads: int
    head_size: int
    bytes: int = 2
    hidden: int = 1
    table: int = 0
    active: int | None = None
    source: str = ""

    def __post_init__(self) -> None:
        for field in ("parameters", "layers", "kv_heads", "head_size", "bytes", "hidden"):
            checked_integer(getattr(self, field), field.replace("_", "-"), 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self.parameters * self.bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of a cached token: a key and a value for each layer and head."""
        return 2 * self.layers * self.kv_heads * self.head_size * self.bytes

    def cached_bytes(self, gpus: int) -> Fraction:
        """Return the bytes of a cached token on so many GPUs.

        If there are more GPUs than heads of keys, several hold the same keys.
        """
        return self.kv_bytes * Fraction(gpus, min(gpus, self.kv_heads))

    @property
    def is_mixture(self) -> bool:
        """Whether a token passes only some experts."""
        return self.active is not None


@dataclass(frozen=True, slots=True)
class Gpu:
    """Figures of a data sheet.

    Parameters
    ----------
    name
        Its name.
    memory
        Bytes.
    bandwidth, link
        Bytes a second: of that memory, and to the other GPUs, in one direction.
    flops
        Operations a second on 16-bit numbers (bf16) in dense matrices.
    source
        The data sheet.
    """

    name: str
    memory: int
    bandwidth: int
    flops: int
    link: int
    source: str


Preset = TypeVar("Preset", ModelShape, Gpu)


TABLES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "presets.toml").read_text(encoding="utf-8")
)
"""Models, GPUs and measured batch times of the file."""


def _model(name: str, vocabulary: int = 0, **row: Any) -> ModelShape:
    return ModelShape(name, **{"head_size": 128, **row}, table=vocabulary * row["hidden"])


def _gpu(name: str, flops: int, source: str, **gigabytes: int) -> Gpu:
    sizes = {field: size * GIGABYTE for field, size in gigabytes.items()}
    return Gpu(name, flops=flops * _TERA, source=source, **sizes)


MODELS = {name: _model(name, **row) for name, row in TABLES["models"].items()}
GPUS = {name: _gpu(name, **row) for name, row in TABLES["gpus"].items()}

SHORT_NAMES = {name.partition("-")[0]: name for name in GPUS}
"""Names without the memory; `a100` is the larger one, which comes later."""


ANY_GPU = {**{short: GPUS[name] for short, name in SHORT_NAMES.items()}, **GPUS}
"""GPUs by both names."""


def preset(presets: Mapping[str, Preset], name: str, option: str) -> Preset:
    """Return one of `MODELS` or `ANY_GPU` by its name, which an option gave."""
    if name.lower() not in presets:
        raise unknown_name(name, presets, option)
    return presets[name.lower()]


def capacity(shape: ModelShape, memory: int, gpus: int, fraction: Fraction) -> int:
    """Return the tokens that fit next to the weights, rounded down.

    Parameters
    ----------
    shape
        The model.
    memory
        Bytes of one GPU.
    gpus
        Number of GPUs that hold the model together.
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
    tokens = (total - shape.weight_bytes) // shape.cached_bytes(gpus)
    if tokens < 1:
        reason = f"has no room: the weights take {shape.weight_bytes:,} bytes of {int(total):,}"
        raise InvalidInput(reason, field=shape.name)
    return tokens
