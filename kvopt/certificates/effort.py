"""How many times its default budget `kvopt.verify` needs for a certificate, known when written.

Everything that can take long is estimated here in the steps that the verifier charges, from
above where that is cheap: a table of states is charged by the ranges that it would fill, and a
search by the labels that the engine kept in the same search.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from kvopt.bounds.kinds import Kinds
from kvopt.model.instance import Instance
from kvopt.model.parts import parts_from
from kvopt.search.proofs import (
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
from kvopt.verify import SMALL_FILE, STEPS

AMPLE = 20
"""Times the default budget that checks what kvopt itself has just written: ten minutes at most."""

_OF_A_RUN = 400
"""Steps for a request in a schedule or run."""
_OF_A_REQUEST = 1000
"""Steps for a request that is read, and whose prices or volumes are looked at."""
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
_OF_A_START = 6
"""Steps for a start of which whole blocks or states are priced."""
_OF_A_KEPT_START = 15
"""Steps for one that may be ruled out by the prices of its states."""
_OF_A_TIME, _OF_A_START_OF_A_SEARCH = 60, 25
"""Steps for a time, and for a start at it, of a search under prices of tokens."""
_OF_RIVALS, _OF_A_LABEL_AT_MOST = 250, 80_000
"""There labels that hold differently are many, and each is compared with its rivals: pieces of a
trace with 8 to 38 requests took 600 to 78,000 steps a label."""
_OF_A_BYTE = 10
"""Steps for a byte that is read."""


def budget_needed(
    size: int,
    instance: Instance,
    runs: int,
    proof: Proof | None,
    lost: int = 0,
    *,
    pauses: bool = False,
    more: int = 0,
    machines: Iterable[tuple[Instance, Proof]] = (),
) -> int:
    """Return how many times the default budget `verify` needs for a file of so many bytes.

    Parameters
    ----------
    size
        Bytes of the file.
    instance
        Its instance.
    runs, lost
        Schedules and runs in it, and pieces of work beside that with which requests complete.
    proof
        Of its lower bound.
    pauses
        Whether prices are those of schedules with pauses, in rounds.
    more
        Steps for what else the file claims.
    machines
        Other machines: their instances, with proofs.
    """
    count = len(instance)
    steps = _OF_A_BYTE * size + (_OF_A_REQUEST + _OF_A_RUN * runs) * count + _OF_A_RUN * lost
    steps += _of_proof(instance, proof, pauses) + more
    for machine, own in machines:
        steps += _OF_A_REQUEST * count + _of_proof(machine, own, pauses)
    return max(1, math.ceil(steps / (STEPS * max(1.0, size / SMALL_FILE))))


def _of_proof(instance: Instance, proof: Proof | None, pauses: bool) -> int:
    """Return the steps of a proof, beyond those of reading it."""
    count = len(instance)
    match proof:
        case Prices(numerators, _):
            steps = _OF_A_PRICE * len(numerators)
            return steps + (_of_pauses(instance, proof) if pauses else 0)
        case BlockPrices(prices):
            steps = _OF_A_PRICE * len(prices.numerators)
            return steps + _of_blocks(instance, prices, pauses)
        case SlotPrices(prices, borders, slots):
            rounds = max(len(prices.numerators), *borders)
            return _OF_A_SLOT_PRICE * rounds + _OF_SLOTS * len(slots) * count
        case VolumeProof(staircases):
            each = 100 * count + 5 * instance.total_output
            return sum(each + 4 * count * len(thresholds) for thresholds in staircases)
        case ConfigurationProof(stages, target, _, kept):
            start = _OF_A_START if target is None else _OF_A_KEPT_START
            steps = sum(_of_stage(instance, stage, start) for stage in stages)
            return steps + _OF_A_LABEL * kept
        case SearchProof(prices, _, kept):
            rounds = len(prices.numerators) + max((r.arrival for r in instance), default=0)
            longest = max((r.output for r in instance), default=0)
            label = min(_OF_A_LABEL_AT_MOST, _OF_A_LABEL + longest * kept // _OF_RIVALS)
            return rounds * (_OF_A_TIME + _OF_A_START_OF_A_SEARCH * count) + label * kept
        case SharesProof(parts=parts):
            return (_OF_SHARES + _OF_A_PART * parts) * count
        case SplitProof(parts):
            found = parts_from(instance, [part.begin for part in parts])
            pairs = zip(found, parts, strict=True)
            return sum(_of_proof(part.instance, known.proof, pauses) for part, known in pairs)
        case None:
            return 0


def _of_pauses(instance: Instance, prices: Prices) -> int:
    """Return the steps for the tables of requests that may pause."""
    from kvopt.bounds.paused_scan import PausedScanner

    return _OF_A_PLACE * PausedScanner(Kinds.of(instance)).places(prices)


def _of_blocks(instance: Instance, prices: Prices, pauses: bool) -> int:
    """Return the steps for the starts whose blocks are priced, and for pauses."""
    from kvopt.bounds.paused_scan import PausedScanner

    scanner = PausedScanner(Kinds.of(instance), block=instance.block_size, pauses=pauses)
    return _OF_A_START * scanner.starts(prices) + _OF_A_PLACE * scanner.places(prices)


def _of_stage(instance: Instance, stage: StatePrices, start: int) -> int:
    """Return the steps of a stage, with so many for a start, as if none had been ruled out."""
    last, count = stage.times[-1], len(instance)
    steps = 1000 + last * (9 + start * count)
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
        steps += len(priced) + _of_table(instance.memory, [state for state in some if state[2]])
    return steps


def _of_table(memory: int, states: list[tuple[int, int, int]]) -> int:
    """Return the steps for a table of the configurations of states (r, h, copies)."""
    if not states:
        return 0
    members = min(sum(copies for _, _, copies in states), memory // min(h for _, h, _ in states))
    steps, low = (members + 1) * (memory + 1), memory
    for r, h, copies in states:
        low = min(low, h)
        counts = min(members, memory // (low + r))
        # Ranges are as long as first, first - less, first - 2 less, ..., while that is positive.
        first, less = memory - h - r + 1, low + r
        filled = max(0, min(counts, -(-first // less)))
        entries = 2 * filled * first - less * filled * (filled - 1) + 12 * counts
        steps += entries * (copies if copies < memory // (h + r) else 1)
    return steps
