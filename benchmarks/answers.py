"""What every command answers of some random instances: record it, and compare two records.

    python benchmarks/answers.py record FILE [--instances N] [--seconds S]
    python benchmarks/answers.py compare BEFORE AFTER

``record`` asks `solve`, `bound`, `certify`, `verify`, `run` and `fleet` the same of N small
instances of each kind (rounds, pauses, blocks, fleets, weights, caps, prefixes, service levels,
seconds), each within S seconds, and writes their answers. ``compare`` names every answer of the
second record that is worse: a larger total latency, a smaller bound, a proof that is gone, or
another value of a policy.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from kvopt import Instance, Request, write_instance
from kvopt.cli.app import app
from kvopt.errors import KvoptError

Answer = dict[str, Any]

_MODEL = {
    "schema": "kvopt.batch-time/1",
    "lines": [{"round_ns": 9, "token_ns": 11}, {"round_ns": 19, "token_ns": 41}],
    "prompt_ns": 1,
    "kv_ns": 3,
}
_KINDS: dict[str, tuple[dict[str, int], list[str]]] = {
    "rounds": ({}, []),
    "pauses": ({}, ["--scope", "pauses"]),
    "blocks": ({"block_size": 2}, []),
    "fleet": ({"workers": 2}, []),
    "weights": ({"weights": 3}, []),
    "cap": ({"max_active": 2}, []),
    "prefixes": ({"block_tokens": 2}, []),
    "slo": ({}, ["--slo", "e2e=6"]),
    "seconds": ({}, ["--seconds"]),
    "seconds-fleet": ({"workers": 2}, ["--seconds"]),
    "seconds-scope": ({}, ["--seconds", "--scope", "pauses+chunks"]),
}
"""Fields of the instances of a kind, and the options that its questions take."""
_POLICIES = ["svf", "mc-sf", "fcfs"]


def main() -> int:
    """Record or compare; the status is 1 if an answer is worse."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    command = commands.add_parser("record")
    command.add_argument("file", type=Path)
    command.add_argument("--instances", type=int, default=40)
    command.add_argument("--seconds", type=float, default=20.0)
    command = commands.add_parser("compare")
    command.add_argument("before", type=Path)
    command.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.what == "record":
        record(options.file, options.instances, options.seconds)
        return 0
    worse = list(compared(read(options.before), read(options.after)))
    print("\n".join([*worse, f"{len(worse)} answers are worse"]))
    return int(bool(worse))


def drawn(
    number: int, *, weights: int = 1, block_tokens: int | None = None, **fields: Any
) -> Instance:
    """Draw an instance of two to six requests: weights up to a limit, and prefixes on demand."""
    rng = random.Random(number)
    memory = rng.randint(5, 14)
    requests = []
    for _ in range(rng.randint(2, 6)):
        prompt = rng.randint(0, memory // 2)
        requests.append(Request(rng.randint(0, 3), prompt, rng.randint(1, (memory - prompt) // 2)))
    if weights > 1:
        requests = [replace(r, weight=rng.randint(1, weights)) for r in requests]
    if block_tokens is not None:
        requests = [replace(r, prefix=prefix(rng, r.prompt // block_tokens)) for r in requests]
    return Instance(memory, requests, round_ms=0.00002, block_tokens=block_tokens, **fields)


def prefix(rng: random.Random, blocks: int) -> tuple[int, ...]:
    """Draw a path of blocks from one of two roots; at each block it may take one of two ways."""
    path: list[int] = []
    for _ in range(rng.randint(0, blocks)):
        path.append(2 * (path[-1] if path else 0) + rng.randint(1, 2))
    return tuple(path)


def record(path: Path, instances: int, seconds: float) -> None:
    """Ask everything of all instances, and write an answer a line."""
    with tempfile.TemporaryDirectory() as folder, path.open("w") as out:
        model = Path(folder) / "model.json"
        model.write_text(json.dumps(_MODEL))
        for kind, (fields, options) in _KINDS.items():
            clock = ["--batch-time", str(model)] if "--seconds" in options else []
            for number in range(instances):
                file = Path(folder) / "instance.json"
                write_instance(drawn(number, **fields), file)
                limit = ["--time-limit", str(seconds), "--threads", "1"]
                found = answers(file, [*options, *clock], limit)
                out.write(json.dumps({"kind": kind, "number": number, **found}) + "\n")
                out.flush()
                print(f"\r{kind} {number + 1}/{instances} ", end="", file=sys.stderr, flush=True)


def answers(file: Path, options: list[str], limit: list[str]) -> Answer:
    """Return what each command answers of one instance."""
    scope = options[options.index("--scope") :][:2] if "--scope" in options else []
    clock = options[options.index("--seconds") :] if "--seconds" in options else []
    clock = [option for option in clock if option not in scope]
    named = [part for policy in _POLICIES for part in ("--policy", policy)]
    certificate = file.with_name("certificate.json")
    certificate.unlink(missing_ok=True)
    return {
        "solve": asked("solve", file, *scope, *clock, *limit),
        "bound": None if clock else asked("bound", file, *scope, *limit),
        "certify": asked("certify", file, *options, *named, *limit, "-o", str(certificate)),
        "verify": CliRunner().invoke(app, ["verify", str(certificate)]).exit_code,
        "run": asked("run", file, *clock, *named),
        "fleet": asked("fleet", file, *clock, "--match", "svf", "--counts", "1..2", *limit),
    }


def asked(command: str, *arguments: str | Path) -> Answer:
    """Return the compared part of the object that a command prints, or why it refuses."""
    found = CliRunner().invoke(app, [command, *map(str, arguments), "--json"])
    if isinstance(found.exception, KvoptError):
        return {"refused": str(found.exception)}
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return dict(numbers("", json.loads(found.stdout)))


def read(path: Path) -> dict[str, Answer]:
    """Return the answers of a record by kind and number."""
    rows = map(json.loads, path.read_text().splitlines())
    return {f"{row['kind']} {row['number']}": row for row in rows}


def compared(before: dict[str, Answer], after: dict[str, Answer]) -> Iterator[str]:
    """Yield a line for each answer that is worse."""
    for place, old in before.items():
        new = after.get(place, {})
        for command, answer in old.items():
            found = new.get(command)
            if not isinstance(answer, dict) or not isinstance(found, dict):
                answer, found = {"": answer}, {"": found}
            for path, value in answer.items():
                if is_worse(f"{command}{path}", value, found.get(path)):
                    yield f"{place}: {command}{path} was {value}, is {found.get(path)}"


def numbers(path: str, answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values of an answer that are compared, with the names that lead to them."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield from numbers(f"{path}.{name}", value)
    elif isinstance(answer, list):
        for place, value in enumerate(answer):
            yield from numbers(f"{path}.{place}", value)
    elif path.rpartition(".")[2] in {*_SMALLER, *_LARGER, "status"}:
        yield path, answer


_SMALLER = (
    "objective",
    "objective_ns",
    "objective_seconds",
    "value_ns",
    "upper",
    "upper_ns",
    "ceiling",
)
_LARGER = ("lower_bound", "lower_bound_ns", "lower", "lower_ns", "value", "best_attained")


def is_worse(path: str, before: Any, after: Any) -> bool:
    """Whether an answer is worse than one before; what a policy does has to stay the same."""
    name = path.rpartition(".")[2]
    if "policies" in path or path == "verify":
        return bool(before != after)
    if name.endswith("refused"):
        return False
    if name == "status":
        return bool(before == "optimal" and after != "optimal")
    if before is None:
        return False
    return after is None or bool(after > before if name in _SMALLER else after < before)


if __name__ == "__main__":
    sys.exit(main())
