"""Models and GPUs by name: what sizes of caches and rooflines are computed from.

Shapes of models are those of their ``config.json``, parameters counted from it.  Figures of GPUs
are those of NVIDIA's data sheets; of arithmetic without sparsity, which is half of what some of
them print, and of links in one direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from kvopt.errors import unknown_name
from kvopt.problem.requests import checked_integer

GIGABYTE = 10**9
"""As papers and data sheets count: 80 GB are 80 * 10^9 bytes."""

_TERA = 10**12


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What of a model decides the size of its weights and of its cache, and what a round costs.

    Parameters
    ----------
    name
        What it is called.
    parameters, layers, kv_heads, head_size
        As published; ``kv_heads`` counts heads of keys, which may be fewer than of queries.
    bytes
        Of a weight and of a cached number.
    hidden
        Numbers that a token is between two layers.
    table
        Parameters of the table of tokens, of which a round reads a row for each token.
    active
        Parameters that a token passes, ``table`` included; fewer than all in a mixture of experts.
    source
        Where the figures are from.
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

    @property
    def is_mixture(self) -> bool:
        """Whether a token passes some experts only."""
        return self.active is not None


@dataclass(frozen=True, slots=True)
class Gpu:
    """What a data sheet says.

    Parameters
    ----------
    name
        What it is called.
    memory
        Bytes.
    bandwidth, link
        Bytes a second: of that memory, and to the other GPUs, in one direction.
    flops
        Operations a second on 16-bit numbers (bf16) in dense matrices.
    source
        Which data sheet.
    """

    name: str
    memory: int
    bandwidth: int
    flops: int
    link: int
    source: str


Preset = TypeVar("Preset", ModelShape, Gpu)


def _model(
    name: str,
    parameters: int,
    layers: int,
    kv_heads: int,
    hidden: int,
    vocabulary: int,
    source: str,
    active: int | None = None,
) -> ModelShape:
    """Return a shape with heads of 128 numbers, which all these models have."""
    return ModelShape(
        name, parameters, layers, kv_heads, 128,
        hidden=hidden, table=vocabulary * hidden, active=active,
        source=f"config.json of {source}",
    )  # fmt: skip


MODELS = {
    shape.name: shape
    for shape in (
        _model("llama-2-7b", 6_738_415_616, 32, 32, 4096, 32_000, "meta-llama/Llama-2-7b-hf"),
        _model("llama-2-13b", 13_015_864_320, 40, 40, 5120, 32_000, "meta-llama/Llama-2-13b-hf"),
        _model("llama-2-70b", 68_976_648_192, 80, 8, 8192, 32_000, "meta-llama/Llama-2-70b-hf"),
        _model("llama-3-8b", 8_030_261_248, 32, 8, 4096, 128_256, "meta-llama/Meta-Llama-3-8B"),
        _model("llama-3-70b", 70_553_706_496, 80, 8, 8192, 128_256, "meta-llama/Meta-Llama-3-70B"),
        _model("mistral-7b", 7_241_732_096, 32, 8, 4096, 32_000, "mistralai/Mistral-7B-v0.1"),
        _model(
            "mixtral-8x7b", 46_702_792_704, 32, 8, 4096, 32_000, "mistralai/Mixtral-8x7B-v0.1",
            active=12_879_925_248,
        ),
        _model("qwen2.5-7b", 7_615_616_512, 28, 4, 3584, 152_064, "Qwen/Qwen2.5-7B"),
        _model("qwen2.5-32b", 32_763_876_352, 64, 8, 5120, 152_064, "Qwen/Qwen2.5-32B"),
        _model("qwen2.5-72b", 72_706_203_648, 80, 8, 8192, 152_064, "Qwen/Qwen2.5-72B"),
        _model(
            "qwen3-30b-a3b", 30_532_122_624, 48, 4, 2048, 151_936, "Qwen/Qwen3-30B-A3B",
            active=3_353_032_704,
        ),
        # A vector of 512 + 64 numbers of 16 bits stands for all keys and values of a layer: as
        # many bytes as a key and a value of one head in 8 bits, as weights have them.
        ModelShape(
            "deepseek-v3", 671_026_419_200, 61, 1, 512 + 64, bytes=1,
            hidden=7168, table=129_280 * 7168, active=37_552_297_472,
            source="config.json of deepseek-ai/DeepSeek-V3",
        ),
        # The formula of the paper: 70 * 10^9 parameters, and every head with its own keys.
        ModelShape(
            "jaillet-2025-v1", 70 * 10**9, 80, 64, 128, hidden=8192,
            source="the formula of jaillet-2025-v1",
        ),
    )
}  # fmt: skip
GPUS = {
    name: Gpu(
        name, memory * GIGABYTE, bandwidth * GIGABYTE, flops * _TERA, link * GIGABYTE,
        f"NVIDIA's data sheet of the {source}",
    )
    for name, memory, bandwidth, flops, link, source in (
        ("a10-24gb", 24, 600, 125, 32, "A10"),
        ("a100-40gb", 40, 1_555, 312, 300, "A100 40GB SXM"),
        ("a100-80gb", 80, 2_039, 312, 300, "A100 80GB SXM"),
        ("h100-80gb", 80, 3_350, 989, 450, "H100 SXM"),
        ("h200-141gb", 141, 4_800, 989, 450, "H200 SXM"),
        ("b200-180gb", 180, 8_000, 2_250, 900, "DGX B200"),
        ("l4-24gb", 24, 300, 121, 32, "L4"),
        ("l40s-48gb", 48, 864, 362, 32, "L40S"),
    )
}  # fmt: skip

SHORT_NAMES = {name.partition("-")[0]: name for name in GPUS}
"""Names without the memory; `a100` is the larger one, which comes later."""


ANY_GPU = {**{short: GPUS[name] for short, name in SHORT_NAMES.items()}, **GPUS}
"""GPUs by both names."""


def preset(known: Mapping[str, Preset], name: str, option: str) -> Preset:
    """Return one of `MODELS` or `ANY_GPU` by its name, which an option gave."""
    if name.lower() not in known:
        raise unknown_name(name, known, option)
    return known[name.lower()]
