"""The time-indexed integer program where requests may pause and keep their tokens.

    python models/pauses.py INSTANCE.json

M tokens fit into the cache.  Request i arrives at round a_i, has a prompt of s_i tokens and
produces o_i, one at each time at which it is active; at the j-th of these it holds s_i + j tokens,
and none while it pauses.  y[i,j,t] is 1 if it has produced j tokens by time t.  T is the last
arrival plus the sum of all outputs: some optimal schedule completes by then, so that token j has
the times up to T - o_i + j.

    minimise    sum over i of ((T - a_i) - sum over t < T of y[i,o_i,t])
    subject to  y[i,j,t] = 1  at its last t                         for each i, j          (done)
                y[i,j,t] <= y[i,j,t+1]                              for each i, j, t       (keep)
                y[i,j,t] <= y[i,j-1,t-1]                            for each i, j > 1, t   (after)
                sum over i, j
                    of (s_i + j) (y[i,j,t] - y[i,j,t-1]) <= M       for each t             (memory)
                y[i,j,t] in {0, 1}
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


def build(memory: int, requests: Requests) -> pyo.ConcreteModel:
    """Return the program."""
    end = max(a for a, _, _ in requests) + sum(o for _, _, o in requests)
    tokens = [(i, j) for i, (_, _, o) in enumerate(requests) for j in range(1, o + 1)]
    last = {(i, j): end - requests[i][2] + j for i, j in tokens}
    columns = [(i, j, t) for i, j in tokens for t in range(requests[i][0] + j, last[i, j] + 1)]
    early = [(i, j, t) for i, j, t in columns if t < last[i, j]]
    model = pyo.ConcreteModel()
    y = model.y = pyo.Var(columns, domain=pyo.Binary)
    model.total_latency = pyo.Objective(
        expr=sum(end - a for a, _, _ in requests)
        - sum(y[i, j, t] for i, j, t in early if j == requests[i][2])
    )
    model.done = pyo.Constraint(tokens, rule=lambda _, i, j: y[i, j, last[i, j]] == 1)
    model.keep = pyo.Constraint(early, rule=lambda _, i, j, t: y[i, j, t] <= y[i, j, t + 1])
    model.after = pyo.Constraint(
        [(i, j, t) for i, j, t in early if j > 1],
        rule=lambda _, i, j, t: y[i, j, t] <= y[i, j - 1, t - 1],
    )

    def held(_: Any, t: int) -> Any:
        produced = [
            (requests[i][1] + j) * (y[i, j, t] - (y[i, j, t - 1] if t > requests[i][0] + j else 0))
            for i, j in tokens
            if (i, j, t) in y
        ]
        return sum(produced) <= memory if produced else pyo.Constraint.Skip

    model.memory = pyo.Constraint(range(1, end + 1), rule=held)
    return model


def pyomo_create_model(options: Any, **_: Any) -> pyo.ConcreteModel:
    """Let ``pyomo convert --format=lp models/pauses.py INSTANCE.json`` write it."""
    return build(*read(options["data"]["files"][0]))


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ``| head`` ends it without an error
    memory, requests = read(sys.argv[1])
    model = build(memory, requests)
    # Totals are integers, so that a gap below 1 is a proof; the usual relative one is not.
    SolverFactory("highs").solve(model, rel_gap=0, abs_gap=0.5)
    print(f"objective {pyo.value(model.total_latency):.10g}")
    times: dict[tuple[int, int], int] = {}
    for (i, j, t), produced in model.y.items():  # times ascend
        if round(pyo.value(produced)) == 1:
            times.setdefault((i, j), t)
    for i, (_, _, o) in enumerate(requests):
        print(f"times {i}", *(times[i, j] for j in range(1, o + 1)))
