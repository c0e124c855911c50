"""Check lower bounds on the time that machines are on."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kvopt.verify.certified_problem import Problem, relaxed
from kvopt.verify.check_seconds import lines_of, part_of
from kvopt.verify.step_budget import Invalid, Work, paired, refuse


def check_machine_time(problem: Problem, claim: dict[str, Any], work: Work) -> tuple[str, str]:
    """Check a machine time; return the checked and the proved claim.

    A request belongs to the window of length ``every`` in which it arrives, and of window k all
    but ``misses[k]`` are served.  A machine holds M tokens, so in rounds a request of volume V
    takes V / M of its time; in seconds it takes X_i, see `by_shares`.  So machines are on for at
    least the sum over windows, each without its largest ones that may miss.
    """
    every, misses, work.part = claim["every"], claim["misses"], "machine_time: "
    wider, _, _ = relaxed(problem, claim.get("relaxations", ()))
    if wider.block > 1 or wider.paths or wider.max_active is not None:
        raise Invalid("machine_time: needs tokens, shares of prefixes, and no limit")
    clock, chosen = wider.clock, lines_of(wider, claim.get("lines", []), "machine_time")
    is_wrong = every < 1 or min(misses, default=0) < 0
    refuse(is_wrong, "machine_time: needs a length, and no negatives")
    done = wider.fresh or [request.prompt for request in wider.requests]
    windows: dict[int, list[int]] = defaultdict(list)
    work.spend(4 * len(done))
    for request, fresh in paired(wider.requests, done):
        arrival, prompt, output = request
        takes = prompt * output + output * (output + 1) // 2
        if clock is not None:
            takes = part_of(wider.memory, request, clock, chosen, fresh)[0]
        windows[arrival // every].append(takes)
    first = min(windows, default=0)
    is_short = len(misses) != max(windows, default=-1) - first + 1
    refuse(is_short, "machine_time: needs misses by window")
    total = sum(
        sum(sorted(takes)[: max(len(takes) - misses[k - first], 0)]) for k, takes in windows.items()
    )
    proved = -(-total // wider.memory)
    refuse(claim["value"] > proved, f"machine_time: says {claim['value']:,}, its sum is {proved:,}")
    of = f"all but {sum(misses):,} of {len(done):,} requests" if any(misses) else "all requests"
    time = f"{claim['value']:,} {'rounds' if clock is None else 'ns'}"
    checked = f"  machine time {claim['value']:,}: what requests take gives {proved:,}"
    return checked, f"  machines are on for at least {time} in all if they serve {of}, by windows"
