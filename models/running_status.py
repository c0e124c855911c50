"""The program with running variables, jaillet-2025-v1 appendix B.1, corrected.

    python models/running_status.py INSTANCE.json [--as-printed]

M tokens fit into the cache.  Request i arrives at round a_i, has a prompt of s_i tokens and
produces o_i.  x[i,k] is 1 if it starts at round k, y[i,t] if it is running at time t.

    minimise    sum over i, k of (k + o_i - a_i) x[i,k]
    subject to  sum over k of x[i,k] = 1                            for each i    (start)
                y[i,t] = sum over k with 1 <= t - k <= o_i
                    of x[i,k]                                       for each i, t (running)
                sum over i of ((s_i + t) y[i,t]
                    - sum over k with 1 <= t - k <= o_i
                      of k x[i,k]) <= M                             for each t    (memory)
                x[i,k], y[i,t] in {0, 1}

The paper prints the memory row as sum of (s_i + t - k_i) y[i,t] with k_i = sum of k x[i,k].  The
product k_i y[i,t] is the sum of k x[i,k] over the k that make i run at t, and so linear.  It
also prints 0 <= t - k < o_i, so that the last token is never counted: --as-printed shows it.
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


def build(memory: int, requests: Requests, *, as_printed: bool = False) -> pyo.ConcreteModel:
    """Return the program."""
    first = 0 if as_printed else 1
    end = max(a for a, _, _ in requests) + sum(o for _, _, o in requests)
    starts = [range(a, end - o + 1) for a, _, o in requests]
    columns = [(i, k) for i, rounds in enumerate(starts) for k in rounds]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(columns, domain=pyo.Binary)
    model.y = pyo.Var(range(len(requests)), range(end + 1), domain=pyo.Binary)
    model.total_latency = pyo.Objective(
        expr=sum((k + requests[i][2] - requests[i][0]) * model.x[i, k] for i, k in columns)
    )
    model.start = pyo.Constraint(
        range(len(requests)), rule=lambda m, i: sum(m.x[i, k] for k in starts[i]) == 1
    )

    def running(i: int, t: int) -> list[int]:
        return [k for k in starts[i] if first <= t - k < first + requests[i][2]]

    model.running = pyo.Constraint(
        list(model.y), rule=lambda m, i, t: m.y[i, t] == sum(m.x[i, k] for k in running(i, t))
    )

    def held(m: Any, t: int) -> Any:
        tokens = [
            (s + t) * m.y[i, t] - sum(k * m.x[i, k] for k in running(i, t))
            for i, (_, s, _) in enumerate(requests)
        ]
        return sum(tokens) <= memory

    model.memory = pyo.Constraint(range(end + 1), rule=held)
    return model


def pyomo_create_model(options: Any, **_: Any) -> pyo.ConcreteModel:
    """Let ``pyomo convert --format=lp models/running_status.py INSTANCE.json`` write it."""
    return build(*read(options["data"]["files"][0]))


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ``| head`` ends it without an error
    memory, requests = read(sys.argv[1])
    model = build(memory, requests, as_printed="--as-printed" in sys.argv)
    # Totals are integers, so that a gap below 1 is a proof; the usual relative one is not.
    SolverFactory("highs").solve(model, rel_gap=0, abs_gap=0.5)
    print(f"objective {pyo.value(model.total_latency):.10g}")
    for (i, k), x in model.x.items():
        if round(pyo.value(x)) == 1:
            print(f"start {i} {k}")
