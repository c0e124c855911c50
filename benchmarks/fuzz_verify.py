"""Look for small certificates that keep ``kvopt verify`` busy, or make it large.

Certificates of every kind are changed at random: numbers become extreme, lists are repeated,
times are moved, outputs and memory grow.  Each is checked in a process of its own with a limit of
address space and time, which reports seconds of CPU, the peak of its memory and the steps that
were charged.  A check of more than 60 s, or of more than 1 GB, is a fault, and so is a crash.

    python benchmarks/fuzz_verify.py --seconds 600 --seed 1 --keep slow/
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kvopt
from kvopt import BatchTime, Line
from kvopt.certificates import Certificate, certify
from kvopt.certificates.files import certificate_text
from kvopt.errors import KvoptError
from kvopt.incumbent.proofs import CheckedBound, VolumeProof
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance_files import instance_from_json

MOST_SECONDS, MOST_BYTES = 60.0, 1_000_000_000
LARGEST = 10_000_000
"""Bytes of a file; those below are promised to be checked, or refused, within the limits."""
_SPARE = 3 * MOST_BYTES
"""Of address space, so that what takes too much is measured rather than refused."""

_CHILD = """
import json, resource, sys, time
import kvopt.verify as v
works = []
class Counted(v.Work):
    def __init__(self, *a):
        super().__init__(*a); works.append(self)
v.Work = Counted
began = time.process_time()
verdict = v.verify(sys.argv[1], 1)  # whatever the file states
print(json.dumps([time.process_time() - began,
    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, works[0].used,
    verdict.exit_status, verdict.lines[-1] if verdict.exit_status else "VALID"]))
"""

EXTREMES = (0, 1, 2, 7, 99, 1000, 65_537, 10**6, 10**7, 10**9, 2**52, 2**53 - 1, 10**18, 10**299)

Content = dict[str, Any]


def seeds(seed: int) -> list[Content]:
    """Return valid certificates of every kind of proof, in rounds and in seconds."""
    texts = []
    for n, limit in ((8, 10), (10, 10), (300, 3)):
        family, memory = ("arrival-1", None) if n < 100 else ("conversation", 16_492)
        instance = kvopt.generate(family, n=n, memory=memory, seed=seed)
        found = certify(instance, ["mc-sf", "a-min"], time_limit=limit, threads=1, slower=True)
        texts.append(certificate_text(found))
        stairs = VolumeProof(((1, 2, 5), (3, 3, 4, 9)))
        weak = CheckedBound(0, "volume", stairs)
        texts.append(certificate_text(Certificate(instance, found.upper, weak, found.runs)))
        split = json.loads(texts[-2])
        proof = split["lower"]["proof"]
        split["lower"]["proof"] = {"kind": "split", "parts": [{"from": 0, "proof": proof}]}
        texts.append(json.dumps(split))
    drawn = kvopt.generate("conversation", n=100, memory=3000, seed=seed)
    source = random.Random(seed)
    requests = [
        kvopt.Request(0, r.prompt, r.output, arrival_seconds=source.uniform(0, 30)) for r in drawn
    ]
    model = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)
    timed = certify(
        kvopt.Instance(3000, requests), ["svf", "a-min"], clock=Seconds(model), slower=True
    )
    texts.append(certificate_text(timed))
    return [json.loads(text) for text in texts]


def places(value: Any, kind: type | tuple[type, ...]) -> list[tuple[Any, Any]]:
    """Return the containers and keys of all values of a kind."""
    found = []
    stack = [value]
    while stack:
        inner = stack.pop()
        pairs = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for key, part in pairs:
            if isinstance(part, kind) and not isinstance(part, bool):
                found.append((inner, key))
            if isinstance(part, (dict, list)):
                stack.append(part)
    return found


def extreme(content: Content, source: random.Random) -> None:
    """Set a number to an extreme, or near to another one of the file."""
    inner, key = source.choice(places(content, (int, float)))
    factor = source.choice((1, 1, 1, 2, 10, 1000))
    inner[key] = source.choice((source.choice(EXTREMES), inner[key] * factor + 1))


def repeated(content: Content, source: random.Random) -> None:
    """Repeat a list, or a part of one."""
    some = [(inner, key) for inner, key in places(content, list) if inner[key]]
    inner, key = source.choice(some)
    own = inner[key]
    part = own if source.random() < 0.5 else [source.choice(own)]
    room = LARGEST // 2 // len(json.dumps(part))
    inner[key] = own + part * min(source.choice((1, 10, 1000, 100_000, 10**6)), room)


def moved(content: Content, source: random.Random) -> None:
    """Move all times of a proof, or all arrivals."""
    by = source.choice((1, 100, 10**5, 10**12))
    for inner, key in places(content, int):
        if key in ("arrival", "first"):
            inner[key] += by
    for inner, key in places(content, list):
        if key == "times" and source.random() < 0.7:
            inner[key] = [t + by if type(t) is int else t for t in inner[key]]


def stretched(content: Content, source: random.Random) -> None:
    """Make the outputs of some requests long, and memory large enough for them."""
    output = source.choice((100, 3000, 10**5, 10**6, 10**7, 10**12))
    rows = content["instance"]["requests"]
    for row in source.sample(rows, source.choice((1, 1, max(1, len(rows) // 2)))):
        row["output"] = output
        row["prompt"] = source.choice((row["prompt"], 0, output))
    if type(content["instance"]["memory"]) is int:
        content["instance"]["memory"] += source.choice((output, 3 * output, 10**9))


def spread(content: Content, source: random.Random) -> None:
    """Move the last times of stages, and arrivals, far out."""
    last = source.choice((500, 10_000, 10**5, 10**6))
    for inner, key in places(content, list):
        if key == "times" and inner[key]:
            inner[key][-1] = last
    row = source.choice(content["instance"]["requests"])
    row["arrival"] = source.choice((0, last - 1, last // 2, 2 * last))


def aimed(content: Content, source: random.Random) -> None:
    """Search for what is a little, or far, above what prices give."""
    proof = (content["lower"] or {}).get("proof", {})
    if proof.get("kind") == "configurations":
        base = source.choice((proof["target"] or 0, sum(
            row["output"] for row in content["instance"]["requests"])))  # fmt: skip
        proof.update(target=base + source.choice((0, 1, 3, 10, 100, 10**4)), searched=True)


def many(content: Content, source: random.Random) -> None:
    """Add requests like those there are; drop the runs, which would not fit."""
    rows = content["instance"]["requests"]
    extra = [dict(source.choice(rows)) for _ in range(source.choice((5, 50, 2000, 50_000)))]
    for row in extra:
        row.pop("id", None)
        row["output"] = max(1, row["output"] + source.choice((0, 0, 1, 2, 3)))
    rows += extra


CHANGES: list[Callable[[Content, random.Random], None]] = [
    extreme, extreme, repeated, moved, stretched, spread, aimed, aimed, many,
]  # fmt: skip


def changed(content: Content, source: random.Random) -> str | None:
    """Return the text of a changed certificate whose hash is right; None if it is too large."""
    found = copy.deepcopy(content)
    if source.random() < 0.8 and found["lower"]:
        # Starts of another problem end the check at once; the proof is what takes time.
        found.update(upper=None, policies=[])
        found["lower"]["value"] = 0
    for _ in range(source.choice((1, 1, 2, 3, 4))):
        try:
            source.choice(CHANGES)(found, source)
        except (IndexError, KeyError, TypeError, AttributeError):
            continue
        if len(json.dumps(found)) > LARGEST:
            return None
        found = json.loads(json.dumps(found))  # so that repeated parts are apart
    memory = found["instance"]["memory"]
    for row in found["instance"]["requests"]:
        if type(memory) is int and type(row["prompt"]) is int and type(row["output"]) is int:
            memory = max(memory, row["prompt"] + row["output"])
    found["instance"]["memory"] = memory
    with contextlib.suppress(ValueError, TypeError, KvoptError, OverflowError):
        found["hash"] = instance_from_json(found["instance"]).hash
    text = json.dumps(found, separators=(",", ":"))
    return text if len(text) <= LARGEST else None


def checked(path: Path) -> tuple[float, int, int, int, str]:
    """Check a file in a process of its own; return seconds, bytes, steps, status and words."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * MOST_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_SPARE, _SPARE)),
    )
    if done.returncode:
        return 0.0, 0, 0, -1, done.stderr[-300:]
    seconds, size, steps, status, words = json.loads(done.stdout)
    return seconds, size, steps, status, words


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="Where the slowest and largest files go.")
    options = parser.parse_args()
    source = random.Random(options.seed)
    originals = seeds(options.seed)
    end = time.monotonic() + options.seconds
    slowest, largest, faults, count = (0.0, ""), (0, ""), 0, 0
    statuses = {-1: 0, 0: 0, 1: 0, 2: 0}
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            text = changed(source.choice(originals), source)
            if text is None:
                continue
            count += 1
            path = Path(folder) / "c.json"
            path.write_text(text)
            seconds, size, steps, status, words = checked(path)
            statuses[status] += 1
            faulty = seconds > MOST_SECONDS or size > MOST_BYTES or status < 0
            faults += faulty
            told = (
                f"{count}: {len(text):,} bytes, {seconds:.1f} s, {size / 1e6:,.0f} MB, "
                f"{steps / 1e6:,.0f} M steps: {words[:120]}"
            )
            better = seconds > slowest[0] or size > largest[0]
            slowest, largest = max(slowest, (seconds, told)), max(largest, (size, told))
            if faulty or better:
                print("FAULT" if faulty else "worst so far", told, flush=True)
                if options.keep is not None:
                    options.keep.mkdir(exist_ok=True)
                    (options.keep / f"{options.seed}-{count}.json").write_text(text)
    print(f"{count} files, {faults} faults; exit statuses {statuses}")
    print("slowest", slowest[1])
    print("largest", largest[1])


if __name__ == "__main__":
    with ended_by_reader():
        main()
