"""JSON Schemas of all files: ``python docs/schemas.py`` writes them into ``docs/static/schemas``.

Those of instances and certificates are made from the shapes that the checker reads, that of study
descriptions from their structs.  Schedules, runs, and the answers of ``kvopt fleet`` and ``kvopt
headroom`` have shapes of the same kind, written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.json import schema as schema_of_struct

from kvopt.studies.description import Description
from kvopt.verify.certificate_shape import CERTIFICATE, INSTANCE

FOLDER = Path(__file__).parent / "static" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", dict: "object"}
MINIMA = {
    **dict.fromkeys(("arrival", "prompt", "arrival_seconds"), 0),
    **dict.fromkeys(("memory", "output", "lower", "upper", "weight", "ttft", "tpot", "e2e"), 1),
    **dict.fromkeys(("workers", "block_size", "max_active", "block_tokens", "block"), 1),
}
"""Least values of integers of instances and runs; certificates have these fields for others too."""
NEWER = {
    *("workers?", "block_size?", "max_active?", "block_tokens?", "priority?", "deadline?"),
    *("ttft?", "tpot?", "e2e?", "weight?", "prefix?"),
}
"""Fields that need the second schema of instances."""
SEGMENTS = [[[int]]]
CLAIMS = {"instance?": str, "objective?": int}
SCHEDULE = (
    {"schema": "kvopt.schedule/1", "starts": [int], **CLAIMS},
    {"schema": "kvopt.schedule/2", "starts": [int], "workers": [int], **CLAIMS},
    {
        **{"schema": "kvopt.schedule/2", "segments": SEGMENTS, "starts?": [int]},
        **{"workers?": [int], **CLAIMS},
    },
)
NUMBER = (int, float)
OR_NONE = (None, int)
FLEET = {
    "fleets": [
        {
            **{"workers": int, "lower": OR_NONE, "upper": OR_NONE, "lower_from": OR_NONE},
            **{"upper_from": OR_NONE, "found_by": (None, str), "bounded_by": (None, str)},
            "runs": dict,
        }
    ],
    **{"machines": [OR_NONE], "needs": dict, "formula": OR_NONE, "gpus": OR_NONE, "target": NUMBER},
    **{"target_said": str, "unit": str, "requests": int, "instance": str, "scope": str},
    **{"answer": str, "left": [str]},
}
SPREAD = (None, {"mean": NUMBER, "median": NUMBER, "p99": NUMBER})
TODAY = {
    **{"policy": str, "is_recorded": bool, "value_ns": int, "latency": SPREAD},
    **{"time_to_first_token": SPREAD, "time_per_output_token": SPREAD},
}
SIMULATED = {
    **{"name": str, "policy": str, "router": (None, str), "vllm": str, "priority": (None, str)},
    **{"mean_seconds": NUMBER, "proved": bool},
}
LOADS = {
    **{
        "limit": str,
        "full": NUMBER,
        "work": (None, *NUMBER),
        "alone": NUMBER,
        "roomy": (None, *NUMBER),
    },
    **{"roomy": (None, *NUMBER), "latency": NUMBER},
}
HEADROOM = {
    **{"headline": str, "undecided": (None, str), "instance": str, "requests": int},
    **{"machines_today": int, "memory": int, "today": (None, TODAY), "upper_ns": OR_NONE},
    **{"lower_ns": OR_NONE, "less_seconds": [(None, *NUMBER)], "scope": str, "covered": str},
    **{"simulated": [SIMULATED], "machines": (None, FLEET), "loads": (None, LOADS)},
    **{"certificates": dict, "notes": [str], "markdown": str},
}
MEASURED = {"latency_ns": int, "rounds": int, "batches": [[int]]}


def older(shape: Any) -> Any:
    """Return the shape of a file of the first schema: without the newer fields."""
    if isinstance(shape, dict):
        return {name: older(inner) for name, inner in shape.items() if name not in NEWER}
    return [older(inner) for inner in shape] if isinstance(shape, list) else shape


INSTANCES = (
    {**older(INSTANCE), "schema": "kvopt.instance/1"},
    {**INSTANCE, "schema": "kvopt.instance/2"},
)
RUN = {
    **{"schema": "kvopt.run/1", "policy": str, "value": int, "block": int, "notes?": dict},
    **{"segments": SEGMENTS, "chunks?": [[int]], "measured?": MEASURED, "instance": INSTANCES},
}


def schema(shape: Any, minima: Mapping[str, int], name: str = "") -> dict[str, Any]:
    """Return the JSON Schema of a shape of ``kvopt.verify.certificate_shape``."""
    if shape is None:
        return {"type": "null"}
    if isinstance(shape, type):
        least = {"minimum": minima[name]} if shape in (int, float) and name in minima else {}
        return {"type": TYPES[shape], **least}
    if isinstance(shape, str):
        return {"const": shape}
    if isinstance(shape, list):
        return {"type": "array", "items": schema(shape[0], minima)}
    if isinstance(shape, tuple):
        if all(isinstance(choice, str) for choice in shape):
            return {"enum": [*shape]}
        return {"anyOf": [schema(choice, minima, name) for choice in shape]}
    fields = {key.rstrip("?"): inner for key, inner in shape.items()}
    return {
        "type": "object",
        "properties": {key: schema(inner, minima, key) for key, inner in fields.items()},
        "required": [key for key in shape if key[-1] != "?"],
        "additionalProperties": False,
    }


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each kind of file, and its schema."""
    for name, shape, minima in (
        ("instance", INSTANCES, MINIMA),
        ("schedule", SCHEDULE, {}),
        ("run", RUN, MINIMA),
        ("certificate", CERTIFICATE, {}),
        ("fleet", FLEET, {}),
        ("headroom", HEADROOM, {}),
    ):
        yield name, {"$schema": DIALECT, "title": f"kvopt: {name}", **schema(shape, minima)}
    study = schema_of_struct(Description)
    yield "study", {"$schema": DIALECT, "title": "kvopt: description of a study", **study}


def written() -> Iterator[tuple[Path, str]]:
    """Yield each file, and its text."""
    for name, content in schemas():
        yield FOLDER / f"{name}.schema.json", f"{json.dumps(content, indent=1)}\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in written():
        path.write_text(text, encoding="utf-8")
