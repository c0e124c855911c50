"""How many times its default budget `kvopt.verify` needs for a certificate, known when written.

Everything that can take long is estimated here in the steps that the verifier charges, from
above where that is cheap: a table of states as the verifier does it, and a search by the labels
that the engine kept in the same search.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kvopt.bounds.kinds import Kinds
from kvopt.incumbent.proofs import (
    BlockPrices,
    ConfigurationProof,
    Prices,
    Proof,
    SearchProof,
    SharesProof,
    SlotPrices,
    SplitProof,
    StatePrices,
    VolumeProof,
)
from kvopt.problem.instance import Instance
from kvopt.problem.parts import parts_from
from kvopt.verify import MOST_STATED, STEPS, table_of

Budget = int | dict[str, Any]
"""Times the default budget, or these as ``times`` and of ``searches`` the labels of each round."""

_OF_A_REQUEST = 1000
"""Steps for a request whose prices or volumes are looked at."""
_OF_A_PRICE = 400
"""Steps for a time with a price, in the table by which the cheapest starts are found."""
_OF_A_SLOT_PRICE, _OF_SLOTS = 200, 6000
"""Steps for a time with a price beside prices of slots, and for a request and a number of slots:
the prices of slots tell starts apart at which the table would look closer."""
_OF_SHARES = 1500
"""Steps for a request in a proof by shares of the machine, with arrivals in nanoseconds."""
_OF_A_PART = 1200
"""Steps for a part of a request in such a proof."""
_OF_A_LABEL = 4000
"""Steps for a label that a search keeps; draws of 8 to 20 requests took 900 to 3,500.

With less, a certificate would not say that its search needs more than the default budget."""
_OF_A_PLACE = 5
"""Steps for an entry in the table of a request that may pause."""
_OF_A_START = 15
"""Steps for a start of which whole blocks or states are priced."""
_OF_A_TIME, _OF_A_START_OF_A_SEARCH = 60, 25
"""Steps for a time, and for a start at it, of a search under prices of tokens."""
_OF_RIVALS, _OF_A_LABEL_AT_MOST = 250, 80_000
"""There labels that hold differently are many, and each is compared with its rivals: pieces of a
trace with 8 to 38 requests took 600 to 78,000 steps a label."""


def budget_needed(
    instance: Instance,
    proof: Proof | None,
    *,
    pauses: bool = False,
    more: int = 0,
    machines: Iterable[tuple[Instance, Proof]] = (),
) -> Budget:
    """Return how many times its default budget `verify` needs, as a certificate states it.

    Parameters
    ----------
    instance, proof
        What the lower bound is of, and its proof.
    pauses
        Whether prices are those of schedules with pauses, in rounds.
    more
        Steps for what else the file claims.
    machines
        Other machines: their instances, with proofs.
    """
    known = [(instance, proof), *machines]
    steps = sum(_OF_A_REQUEST * len(own) + _of_proof(own, said, pauses) for own, said in known)
    searches = [kept for _, said in known for kept in _searches(said)]
    times = max(1, math.ceil((steps + more) / STEPS))
    if not searches or times == 1:
        return times
    # Most searches take a tenth of what they might, so the verifier shall begin with them all.
    return {"times": min(times, MOST_STATED), "searches": searches}


def _searches(proof: Proof | None) -> list[tuple[int, ...]]:
    """Return how many labels each search of a proof kept of each round."""
    match proof:
        case SplitProof(parts):
            return [kept for part in parts for kept in _searches(part.proof)]
        case ConfigurationProof(kept=kept) | SearchProof(kept=kept) if kept:
            return [kept]
    return []


def _of_proof(instance: Instance, proof: Proof | None, pauses: bool) -> int:
    """Return the steps of a proof, beyond those of reading it."""
    count = len(instance)
    match proof:
        case Prices(numerators, _):
            steps = _OF_A_PRICE * len(numerators)
            return steps + (_of_starts(instance, proof, True) if pauses else 0)
        case BlockPrices(prices):
            steps = _OF_A_PRICE * len(prices.numerators)
            return steps + _of_starts(instance, prices, pauses)
        case SlotPrices(prices, borders, slots):
            rounds = max(len(prices.numerators), *borders)
            return _OF_A_SLOT_PRICE * rounds + _OF_SLOTS * len(slots) * count
        case VolumeProof(staircases):
            each = 100 * count + 5 * instance.total_output
            return sum(each + 4 * count * len(thresholds) for thresholds in staircases)
        case ConfigurationProof(stages, kept=kept):
            return sum(_of_stage(instance, stage) for stage in stages) + _OF_A_LABEL * sum(kept)
        case SearchProof(prices, _, kept):
            rounds = len(prices.numerators) + max((r.arrival for r in instance), default=0)
            longest = max((r.output for r in instance), default=0)
            label = min(_OF_A_LABEL_AT_MOST, _OF_A_LABEL + longest * sum(kept) // _OF_RIVALS)
            return rounds * (_OF_A_TIME + _OF_A_START_OF_A_SEARCH * count) + label * sum(kept)
        case SharesProof(parts=parts):
            return (_OF_SHARES + _OF_A_PART * parts) * count
        case SplitProof(parts):
            found = parts_from(instance, [part.begin for part in parts])
            pairs = zip(found, parts, strict=True)
            return sum(_of_proof(part.instance, known.proof, pauses) for part, known in pairs)
        case None:
            return 0


def _of_starts(instance: Instance, prices: Prices, pauses: bool) -> int:
    """Return the steps for the starts whose blocks are priced, and for pauses."""
    from kvopt.bounds.paused_scan import PausedScanner  # it loads numba, and so does this one:
    from kvopt.bounds.scan import Scanner

    if not pauses:
        return _OF_A_START * Scanner(Kinds.of(instance)).likely_starts(prices)
    scanner = PausedScanner(Kinds.of(instance))
    return _OF_A_START * scanner.likely_starts(prices) + _OF_A_PLACE * scanner.places(prices)


def _of_stage(instance: Instance, stage: StatePrices) -> int:
    """Return the steps of a stage as if no start had been ruled out."""
    last, count = stage.times[-1], len(instance)
    steps = 1000 + last * (9 + _OF_A_START * count)
    earliest = defaultdict(list)  # for each state, from when on each request may be in it
    for request in instance:
        for r in range(request.output):
            earliest[request.peak, r].append(request.arrival + request.output - r)
    for times in earliest.values():
        times.sort()
    priced, place = [], 0
    for peak, rounds in stage.peaks:
        own = [(r, peak - r, place + r, earliest.get((peak, r), [])) for r in range(rounds)]
        priced += [state for state in own if state[3]]
        place += rounds
    steps += len(priced) * (6 * last + 15 * len(stage.times))
    priced.sort(key=lambda state: state[:2], reverse=True)
    nexts = [*stage.times[1:], last + 1]
    for until, row in zip(nexts, stage.numerators, strict=True):
        some = [(r, h, bisect_right(when, until - 1)) for r, h, at, when in priced if row[at]]
        steps += len(priced) + table_of(instance.memory, [s for s in some if s[2]])[1]
    return steps
