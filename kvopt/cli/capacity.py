"""``kvopt capacity``: the tokens of KV cache that a machine has room for."""

from __future__ import annotations

from dataclasses import asdict, replace
from fractions import Fraction
from typing import Annotated, Any

import typer

from kvopt.cli import common
from kvopt.cli.assumed import say_assumed_options
from kvopt.cli.common import option
from kvopt.errors import InvalidInput, shown
from kvopt.problem.hardware.capacity import OBSERVED_MEMORY, SHARE, capacity
from kvopt.problem.hardware.presets import ANY_GPU, GIGABYTE, GPUS, MODELS, preset

_OF_THE_PAPERS = ("jaillet-2025-v1", "llama-2-70b")
"""Models on which the papers and the formula disagree, which a note explains."""


def capacity_command(
    context: typer.Context,
    model: Annotated[
        str, option("--model", "One of {models}.", "NAME", names="models")
    ] = "llama-2-70b",
    parameters: Annotated[
        int | None, option("--parameters", "Weights of the model.", "N", min=1)
    ] = None,
    layers: Annotated[int | None, option("--layers", "Its layers.", "N", min=1)] = None,
    kv_heads: Annotated[int | None, option("--kv-heads", "Its heads of keys.", "N", min=1)] = None,
    head_size: Annotated[int | None, option("--head-size", "Numbers in a key.", "N", min=1)] = None,
    size: Annotated[
        int | None, option("--bytes", "Bytes of a weight or cached number.", "N", min=1)
    ] = None,
    gpu: Annotated[str, option("--gpu", "One of {gpus}.", "NAME", names="gpus")] = "a100-80gb",
    gpu_memory: Annotated[
        str | None, option("--gpu-memory", "10^9 bytes of one GPU.", "GB")
    ] = None,
    gpus: Annotated[int, option("--gpus", "GPUs that hold the model together.", "N", min=1)] = 2,
    fraction: Annotated[
        str, option("--fraction", "Share of memory for weights and cache.", "F")
    ] = str(float(SHARE)),
    list_: Annotated[bool, option("--list", "Print the presets with their sources.")] = False,
    json: common.Json = False,
) -> None:
    """Print how many tokens of KV cache fit beside the weights of a model.

    That is (GPUs x memory x fraction - parameters x bytes) / (2 x layers x KV heads x head size
    x bytes), rounded down; GPUs beyond the KV heads hold copies and add none.  Options change what
    a preset says.
    """
    if list_:
        _list(json)
        return
    given: dict[str, Any] = {
        "parameters": parameters, "layers": layers, "kv_heads": kv_heads, "head_size": head_size,
        "bytes": size,
    }  # fmt: skip
    shape = preset(MODELS, model, "--model")
    shape = replace(shape, **{name: number for name, number in given.items() if number})
    if gpu_memory:
        memory = int(_number(gpu_memory, "--gpu-memory") * GIGABYTE)
    else:
        memory = preset(ANY_GPU, gpu, "--gpu").memory
    share = _number(fraction, "--fraction")
    tokens = capacity(shape, memory, gpus, share)
    # These say which machine it is; a GPU of a given size needs no name.
    say_assumed_options(context, ("model", *(() if gpu_memory else ("gpu",)), "gpus", "fraction"))
    note = _note() if shape.name in _OF_THE_PAPERS else None
    if json:
        facts = {
            "memory": tokens, "kv_bytes": shape.kv_bytes, "weight_bytes": shape.weight_bytes,
            "gpu_memory": memory, "gpus": gpus, "fraction": float(share), "note": note,
        }  # fmt: skip
        common.print_json(facts)
        return
    print(f"{tokens:,} tokens of {shape.kv_bytes:,} bytes")
    print(f"weights {shape.weight_bytes:,} bytes; {gpus} x {memory:,} bytes x {fraction}")
    if note:
        common.say(note)


def _list(json: bool) -> None:
    """Print what is known of models and of GPUs."""
    if json:
        shapes, devices = map(asdict, MODELS.values()), map(asdict, GPUS.values())
        common.print_json({"models": [*shapes], "gpus": [*devices]})
        return
    models = common.new_table(
        "model", "parameters>", "a token passes>", "cache bytes a token>", "source",
        prose=("source",), optional=("a token passes",),
    )  # fmt: skip
    for shape in MODELS.values():
        counts = (shape.parameters, shape.active or shape.parameters, shape.kv_bytes)
        models.add_row(shape.name, *(f"{count:,}" for count in counts), shape.source)
    gpus = common.new_table(
        "GPU", "GB>", "GB/s>", "TFLOP/s>", "link GB/s>", "source", prose=("source",)
    )
    for gpu in GPUS.values():
        gigabytes = (number // GIGABYTE for number in (gpu.memory, gpu.bandwidth))
        numbers = (*gigabytes, gpu.flops // (1000 * GIGABYTE), gpu.link // GIGABYTE)
        gpus.add_row(gpu.name, *(f"{number:,}" for number in numbers), gpu.source)
    common.print_table(models)
    print()
    common.print_table(gpus)


def _number(text: str, field: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"must be a number, got {shown(text)}", field=field) from None


def _note() -> str:
    paper, llama = MODELS["jaillet-2025-v1"], MODELS["llama-2-70b"]
    memory = GPUS["a100-80gb"].memory
    own, grouped = (capacity(shape, memory, 2, Fraction(1)) for shape in (paper, llama))
    return (
        f"kvopt: jaillet-2025-v1 states {OBSERVED_MEMORY:,} tokens for Llama-2-70B on two A100; "
        f"its formula, (160 GB - 140 GB) / {paper.kv_bytes:,} bytes, gives {own:,}. It gives every "
        f"query head keys of its own; with the 8 heads of keys that the model has, the whole "
        f"memory beside the weights holds {grouped:,}. v2 calls {OBSERVED_MEMORY:,} an observed "
        "value."
    )
