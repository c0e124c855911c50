"""What an exhaustive search forward in time takes: partial schedules kept, seconds, memory.

    python benchmarks/searching.py [--family arrival-1] [--n 20] [--seed 0] [--upper LATENCY]
                                   [--open 0.25 0.5 1] [--threads 1] [--rounds 20] [--sets 10000]

Climbs all stages below a schedule, that of ten seconds of the exact engine or one of the latency
given, then searches for schedules in so much of what is open between bound and schedule, looking
so many rounds ahead.  With ``--sets`` there are completion bounds of so many sets of a time first,
and the searches use the last ones.  ``--n 0`` is a draw of the family's own size.
"""

from __future__ import annotations

import argparse
import resource
import time

from kvopt import generate, solve
from kvopt.bounds.configurations.bound import STAGES
from kvopt.bounds.configurations.completion import Completions
from kvopt.bounds.configurations.expand import TooWide
from kvopt.bounds.configurations.forward_search import ForwardSearch, twins_of
from kvopt.bounds.configurations.lookahead import Lookahead
from kvopt.bounds.configurations.stages import Rising
from kvopt.kernels.pipes import ended_by_reader

_LABEL_LIMIT = 12_000_000
"""As in the last searches of `kvopt.search.exact.engine`."""


def main() -> None:
    """Print a row for each target."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", default="arrival-1")
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--upper", type=int)
    parser.add_argument("--open", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sets", type=int, nargs="*", default=[])
    options = parser.parse_args()
    solve(generate(options.family, 8, seed=1), "exact", time_limit=60)  # compiles, loads
    instance = generate(options.family, options.n or None, seed=options.seed)
    schedule = solve(instance, "exact", time_limit=10).schedule
    assert schedule is not None
    upper = options.upper or schedule.objective
    rising = Rising(instance, schedule.makespan, options.threads)
    for stage in STAGES:
        evaluation = rising.climb(stage, upper)
        rising.rule_out(evaluation, upper)
    budget = (upper - 1) * evaluation.denominator - evaluation.total
    ahead = Lookahead(rising.states, evaluation, budget, options.rounds) if options.rounds else None
    print(f"{instance.name}: bound {evaluation.bound}, schedule {upper}")
    rest = Completions(rising.states, evaluation, budget) if options.sets else None
    for sets in options.sets:
        assert rest is not None
        began = time.monotonic()
        rest.fill(sets, int(budget / 4), lambda: False)
        rise, seconds = rest.rise / evaluation.denominator, time.monotonic() - began
        print(f"{sets:,} sets: {evaluation.bound} rises by {rise:.1f} in {seconds:.1f} s")
    print("| target | kept | seconds | most memory so far, MB |")
    print("|---|---|---|---|")
    for share in [0.0, *options.open]:
        target = evaluation.bound + round(share * (upper - evaluation.bound))
        forward = ForwardSearch(
            rising.states, twins_of(instance), evaluation, target, ahead, rest, options.threads
        )
        began = time.monotonic()
        try:
            found = forward.search_exhaustively(_LABEL_LIMIT)
            kept = f"{forward.kept:,}" + (" and found one" if found else "")
        except TooWide:
            kept = f"over the limit after {forward.kept:,}"
        seconds = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"| {target} | {kept} | {seconds:.1f} | {memory:,} |", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
