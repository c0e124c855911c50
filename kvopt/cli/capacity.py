"""``kvopt capacity``: the tokens of KV cache that a machine has room for."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.assumed import say_assumed_options
from kvopt.errors import InvalidInput, shown
from kvopt.hardware.capacity import (
    GIGABYTE,
    GPUS,
    MODELS,
    OBSERVED_MEMORY,
    Gpu,
    ModelShape,
    capacity,
)

_OF_THE_PAPERS = ("jaillet-2025-v1", "llama-2-70b")


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("capacity", epilog=_presets())(capacity_command)


def _presets() -> str:
    return f"[bold]Models[/bold] {', '.join(MODELS)}\n\n[bold]GPUs[/bold] {', '.join(GPUS)}"


def _count(flag: str, about: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(flag, min=1, metavar="N", help=about)
    return option


def capacity_command(
    context: typer.Context,
    model: Annotated[str, typer.Option("--model", help="One of the models below.")] = "llama-2-70b",
    parameters: Annotated[int | None, _count("--parameters", "Weights of the model.")] = None,
    layers: Annotated[int | None, _count("--layers", "Its layers.")] = None,
    kv_heads: Annotated[int | None, _count("--kv-heads", "Its heads of keys.")] = None,
    head_size: Annotated[int | None, _count("--head-size", "Numbers in a key.")] = None,
    size: Annotated[int | None, _count("--bytes", "Bytes of a weight or cached number.")] = None,
    gpu: Annotated[str, typer.Option("--gpu", help="One of the GPUs below.")] = "a100-80gb",
    gpu_memory: Annotated[
        str | None, typer.Option("--gpu-memory", metavar="GB", help="10^9 bytes of one GPU.")
    ] = None,
    gpus: Annotated[int, _count("--gpus", "GPUs that hold the model together.")] = 2,
    fraction: Annotated[
        str, typer.Option("--fraction", help="Share of memory for weights and cache.")
    ] = "0.9",
    json: common.Json = False,
) -> None:
    """Print how many tokens of KV cache fit beside the weights of a model.

    That is (GPUs x memory x fraction - parameters x bytes) / (2 x layers x KV heads x head size
    x bytes), rounded down.  Options change what a preset says.
    """
    shape = _shape(model, parameters, layers, kv_heads, head_size, size)
    memory = int(_number(gpu_memory, "--gpu-memory") * GIGABYTE) if gpu_memory else _gpu(gpu).memory
    tokens = capacity(shape, memory, gpus, _number(fraction, "--fraction"))
    say_assumed_options(context, _not_said(gpu_memory))
    note = _note() if model in _OF_THE_PAPERS else None
    if json:
        common.print_json(
            {
                "memory": tokens,
                "kv_bytes": shape.kv_bytes,
                "weight_bytes": shape.weight_bytes,
                "gpu_memory": memory,
                "gpus": gpus,
                "fraction": float(_number(fraction, "--fraction")),
                "note": note,
            }
        )
        return
    print(f"{tokens:,} tokens of {shape.kv_bytes:,} bytes")
    print(f"weights {shape.weight_bytes:,} bytes; {gpus} x {memory:,} bytes x {fraction}")
    if note:
        common.messages.print(note)


def _not_said(gpu_memory: str | None) -> list[str]:
    """Return the options that say which machine it is; a GPU of a given size needs no name."""
    return ["model", *([] if gpu_memory else ["gpu"]), "gpus", "fraction"]


def _shape(
    model: str,
    parameters: int | None,
    layers: int | None,
    kv_heads: int | None,
    head_size: int | None,
    size: int | None,
) -> ModelShape:
    if model not in MODELS:
        reason = f"must be one of {', '.join(MODELS)}, got {shown(model)}"
        raise InvalidInput(reason, field="--model")
    known = MODELS[model]
    return ModelShape(
        model,
        parameters or known.parameters,
        layers or known.layers,
        kv_heads or known.kv_heads,
        head_size or known.head_size,
        size or known.bytes,
    )


def _gpu(name: str) -> Gpu:
    if name not in GPUS:
        raise InvalidInput(f"must be one of {', '.join(GPUS)}, got {shown(name)}", field="--gpu")
    return GPUS[name]


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
