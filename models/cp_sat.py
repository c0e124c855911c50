"""The same problem for CP-SAT: one start variable a request, and memory as a staircase.

    python models/cp_sat.py INSTANCE.json

M tokens fit into the cache.  Request i arrives at round a_i, has a prompt of s_i tokens and
produces o_i.  It starts at round k_i, and completes at k_i + o_i.

    minimise    sum over i of (k_i + o_i - a_i)
    subject to  cumulative over the intervals
                    [k_i, k_i + o_i)      with s_i + 1 tokens       for each i
                    [k_i + j, k_i + o_i)  with 1 token              for each i, 1 <= j < o_i
                with capacity M
                a_i <= k_i <= T - o_i

A token that is there stays until its request completes: that of round j from k_i + j on.  T is the
last arrival plus the sum of all outputs: some optimal schedule completes by then.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Any

from ortools.sat.python import cp_model

Requests = list[tuple[int, int, int]]
KNOWN = {"schema", "name", "notes", "memory", "requests", "id", "arrival", "prompt", "output"}


def read(path: str | Path) -> tuple[int, Requests]:
    """Return memory and (a, s, o) of each request; refuse what this model does not know."""
    data = json.loads(Path(path).read_text())
    if more := {*data}.union(*data["requests"]) - KNOWN:
        sys.exit(f"{path}: this model does not know {', '.join(sorted(more))}")
    if not data["requests"]:
        sys.exit(f"{path}: holds no requests")
    return data["memory"], [(r["arrival"], r["prompt"], r["output"]) for r in data["requests"]]


def build(memory: int, requests: Requests) -> tuple[cp_model.CpModel, list[Any]]:
    """Return the model and the start of each request."""
    end = max(a for a, _, _ in requests) + sum(o for _, _, o in requests)
    model = cp_model.CpModel()
    starts = [model.new_int_var(a, end - o, f"k_{i}") for i, (a, _, o) in enumerate(requests)]
    intervals, tokens = [], []
    for k, (_, s, o) in zip(starts, requests, strict=True):
        intervals += [model.new_fixed_size_interval_var(k + j, o - j, "") for j in range(o)]
        tokens += [s + 1] + [1] * (o - 1)
    model.add_cumulative(intervals, tokens, memory)
    model.minimize(sum(k + o - a for k, (a, _, o) in zip(starts, requests, strict=True)))
    return model, starts


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ``| head`` ends it without an error
    model, starts = build(*read(sys.argv[1]))
    solver = cp_model.CpSolver()
    solver.solve(model)
    print(f"objective {solver.objective_value:.0f}")
    for i, k in enumerate(starts):
        print(f"start {i} {solver.value(k)}")
