"""Batch times computed from data sheets: rooflines, not measurements.

A round on n GPUs that share every layer takes the longer of two times,

* reading every weight once, at `READING` of the bandwidth of the memory,
* two operations for each weight that a token passes, at `COMPUTING` of the peak,

and in addition `LAYER_NS` a layer for other work, two exchanges of each layer's results if there is
more than one GPU (`EXCHANGE_NS`, and the bytes at `EXCHANGING` of the link), and reading the cache,
at `READING` again.  docs/seconds.md compares it with measured rounds.
"""

from __future__ import annotations

import re
from fractions import Fraction

from kvopt.errors import InvalidInput, shown
from kvopt.problem.batch_time import NANOSECONDS, BatchTime, Line
from kvopt.problem.hardware.presets import (
    ANY_GPU,
    MODELS,
    SHARE,
    SHORT_NAMES,
    Gpu,
    ModelShape,
    capacity,
    preset,
)

READING = Fraction(8, 10)
COMPUTING = Fraction(6, 10)
EXCHANGING = Fraction(6, 10)
"""Attained shares of the figures of data sheets."""
LAYER_NS = 50_000
"""Nanoseconds a layer, to start kernels and for kernels that neither read nor compute much."""
EXCHANGE_NS = 20_000
"""Nanoseconds of an empty exchange among GPUs."""
SENT_BYTES = 2
"""Bytes of a number that GPUs exchange: 16 bits, also if weights have 8."""

SHAPES = {name: shape for name, shape in MODELS.items() if shape.table}
"""Real models, without the formula of a paper."""
COUNTS = (1, 2, 4, 8)
"""Numbers of GPUs: layers are divided evenly, inside one machine."""
LEAST_CACHE = 16_384
"""Tokens that must fit next to the weights if the number of GPUs is not given."""

CHECKED = ("a100-80gb", "h100-80gb")
"""GPUs on which rooflines of models without experts were compared with measured rounds."""
MOSTLY, EXTREMES = (0.8, 1.25), (0.6, 1.45)
"""Roofline over measured time: 93 rounds of 100, and all (``docs/seconds.md``)."""

_NAME = re.compile(r"([^@]+)@(?:(\d{1,3})x)?([^@]+)", re.IGNORECASE)
_GPUS = re.compile(r"[@-](\d{1,3})x(\w+)", re.IGNORECASE)
"""Numbers of GPUs in the names of batch-time models."""


def is_roofline(text: str) -> bool:
    """Whether a text names a pair rather than a measured preset or a file."""
    return "@" in text and not text.lower().endswith(".json")


def pairs() -> list[str]:
    """Return the names of all pairs that fit, each on as many GPUs as it needs."""
    return [
        f"{model}@{gpu}"
        for model, shape in SHAPES.items()
        for gpu in SHORT_NAMES
        if _fits(shape, ANY_GPU[gpu], COUNTS[-1])
    ]


def parts(text: str, field: str = "batch time") -> tuple[ModelShape, Gpu, int]:
    """Return model, GPU and number of GPUs of a name ``MODEL@GPU`` or ``MODEL@NxGPU``.

    Errors name the field.
    """
    match = _NAME.fullmatch(text)
    if match is None:
        reason = f"must be MODEL@GPU or MODEL@NxGPU, llama-3-70b@4xh100 say, got {shown(text)}"
        raise InvalidInput(reason, field=field)
    model, count, gpu = match.groups()
    shape = preset(SHAPES, model, f"{field}: model")
    device = preset(ANY_GPU, gpu, f"{field}: GPU")
    if count is None:
        return shape, device, least_gpus(shape, device)
    gpus = int(count)
    if gpus not in COUNTS:
        reason = f"must be on {', '.join(map(str, COUNTS[:-1]))} or {COUNTS[-1]} GPUs"
        raise InvalidInput(f"{reason}, got {shown(text)}", field=field)
    if gpus < least_gpus(shape, device):  # perhaps with less cache than by default
        capacity(shape, device.memory, gpus, SHARE)
    return shape, device, gpus


def gpus_of(model: BatchTime) -> int | None:
    """Return the GPUs of a machine by the name of its model, ``llama-3-70b@4xh100`` say.

    Examples
    --------
    >>> gpus_of(roofline(*parts("llama-3-70b@4xh100")))
    4
    """
    for count, gpu in _GPUS.findall(model.name or ""):
        if gpu.lower() in ANY_GPU:
            return int(count)
    return None


def least_gpus(shape: ModelShape, gpu: Gpu) -> int:
    """Return the fewest GPUs on which the weights and some cache fit."""
    for count in COUNTS:
        if _fits(shape, gpu, count):
            return count
    raise InvalidInput(f"does not fit on {COUNTS[-1]} x {gpu.name}", field=shape.name)


def _fits(shape: ModelShape, gpu: Gpu, gpus: int) -> bool:
    cache = LEAST_CACHE * shape.cached_bytes(gpus)
    return shape.weight_bytes + cache <= gpus * gpu.memory * SHARE


def roofline(shape: ModelShape, gpu: Gpu, gpus: int) -> BatchTime:
    """Return the model that this module describes.

    Examples
    --------
    >>> roofline(*parts("llama-3-8b@h100")).name
    'llama-3-8b@1xh100-80gb'
    """
    reading = gpus * gpu.bandwidth * READING / NANOSECONDS  # bytes in a nanosecond
    computing = gpus * gpu.flops * COMPUTING / NANOSECONDS
    weights = (shape.parameters - shape.table) * shape.bytes
    operations = 2 * ((shape.active or shape.parameters) - shape.table)
    fixed = shape.layers * (LAYER_NS + (2 * EXCHANGE_NS if gpus > 1 else 0))
    # GPUs exchange the numbers of a token twice in each layer.
    sent = Fraction(2 * (gpus - 1), gpus) * shape.hidden * SENT_BYTES
    token = 2 * shape.layers * sent / (gpu.link * EXCHANGING / NANOSECONDS)
    return BatchTime(
        [
            Line(round(weights / reading + fixed), round(token)),
            Line(fixed, round(operations / computing + token)),
        ],
        kv_ns=round(shape.cached_bytes(gpus) / reading),
        name=f"{shape.name}@{gpus}x{gpu.name}",
        notes=_notes(shape, gpu, gpus),
    )


def is_checked(shape: ModelShape, gpu: Gpu) -> bool:
    """Whether times of such a pair were compared with measured ones."""
    return gpu.name in CHECKED and not shape.is_mixture


def expected_error(shape: ModelShape, gpu: Gpu) -> str:
    """Return the known errors of the times, as half a sentence."""
    others = f"93 rounds of 100 came to {_ratio(MOSTLY)} times the measured time of their operators"
    if is_checked(shape, gpu):
        return f"{others}, all of them to {_ratio(EXTREMES)}"
    few = "; small batches read few experts and take less" if shape.is_mixture else ""
    if shape.bytes == 1:
        few += "; arithmetic is counted at the speed of 16 bits, in 8 it takes up to half as long"
    return f"compared with no measured round (without experts, on A100 and H100, {others}){few}"


def _ratio(limits: tuple[float, float]) -> str:
    return f"{limits[0]:g} to {limits[1]:g}"


def _notes(shape: ModelShape, gpu: Gpu, gpus: int) -> str:
    return (
        f"a roofline, not a measurement: {shape.source}; {gpus} x {gpu.name}, {gpu.source}: "
        f"{gpu.bandwidth // 10**9:,} GB/s at {float(READING):.0%}, {gpu.flops // 10**12:,} TFLOP/s "
        f"at {float(COMPUTING):.0%}, {LAYER_NS // 1000} microseconds a layer; "
        f"{expected_error(shape, gpu)}"
    )
