"""The time-indexed integer program: jaillet-2025-v2 equations 1 to 4, wang-2025 7 to 10.

    python models/time_indexed.py INSTANCE.json [--relax]

M tokens fit into the cache.  Request i arrives at round a_i, has a prompt of s_i tokens and
produces o_i.  x[i,k] is 1 if it starts at round k: then it holds s_i + t - k tokens at the times
t = k + 1 .. k + o_i, and completes at k + o_i.

    minimise    sum over i, k of (k + o_i - a_i) x[i,k]
    subject to  sum over k of x[i,k] = 1                            for each i    (start)
                sum over i, k with 1 <= t - k <= o_i
                    of (s_i + t - k) x[i,k] <= M                    for each t    (memory)
                x[i,k] in {0, 1}, with --relax 0 <= x[i,k] <= 1, a lower bound

Everything completes by the last arrival and the sum of all outputs in some optimal schedule.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.contrib.solver.common.factory import SolverFactory

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


def build(memory: int, requests: Requests, *, relax: bool = False) -> pyo.ConcreteModel:
    """Return the program."""
    end = max(a for a, _, _ in requests) + sum(o for _, _, o in requests)
    starts = [range(a, end - o + 1) for a, _, o in requests]
    columns = [(i, k) for i, rounds in enumerate(starts) for k in rounds]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(columns, domain=pyo.UnitInterval if relax else pyo.Binary)
    model.total_latency = pyo.Objective(
        expr=sum((k + requests[i][2] - requests[i][0]) * model.x[i, k] for i, k in columns)
    )
    model.start = pyo.Constraint(
        range(len(requests)), rule=lambda m, i: sum(m.x[i, k] for k in starts[i]) == 1
    )

    def held(m: Any, t: int) -> Any:
        active = [(i, k) for i, k in columns if 1 <= t - k <= requests[i][2]]
        tokens = sum((requests[i][1] + t - k) * m.x[i, k] for i, k in active)
        return tokens <= memory if active else pyo.Constraint.Skip

    model.memory = pyo.Constraint(range(1, end + 1), rule=held)
    return model


def pyomo_create_model(options: Any, **_: Any) -> pyo.ConcreteModel:
    """Let ``pyomo convert --format=lp models/time_indexed.py INSTANCE.json`` write it."""
    return build(*read(options["data"]["files"][0]))


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ``| head`` ends it without an error
    memory, requests = read(sys.argv[1])
    model = build(memory, requests, relax="--relax" in sys.argv)
    # Totals are integers, so that a gap below 1 is a proof; the usual relative one is not.
    SolverFactory("highs").solve(model, rel_gap=0, abs_gap=0.5)
    print(f"objective {pyo.value(model.total_latency):.10g}")
    for i in range(len(requests)):
        print(f"start {i} {sum(k * pyo.value(x) for (j, k), x in model.x.items() if j == i):.6g}")
