"""Beam search round by round over labels, by prices of states.

In each round a label may start nothing, or one candidate after another that still fits.  Its
estimated cost is the spent cost, the cost of waiting, and the cost of a greedy run of the next
rounds.  Slack of the next rounds depends on their starts.  A greedy run finds feasible starts, so a
label is evaluated by a schedule and not by a bound, which would favour labels with little
information.
"""

from __future__ import annotations

import numpy as np

from kvopt.heuristics.state_beams.guides import Guide, fill_rows, line_at
from kvopt.heuristics.state_beams.labels import (
    ACTIVE,
    BEGAN,
    HASH,
    LATER,
    LEFT,
    NEWEST,
    SCORE,
    SLOPE,
    SPENT,
    TRAIL,
    Labels,
    add_life,
    copy_label,
    is_first,
    take_out,
    waits,
)
from kvopt.heuristics.state_beams.rolls import cost_at, fill_caps, list_candidates
from kvopt.heuristics.state_beams.rooms import (
    ALIVE,
    BEST,
    BEST_TRAIL,
    NOW,
    STEPS,
    TRAILED,
    Beam,
    Plan,
)
from kvopt.kernels.compiled import steering
from kvopt.kernels.copying import copy_into, order_of
from kvopt.kernels.magnitudes import NEVER
from kvopt.kernels.random_numbers import normal
from kvopt.problem.arrays import Integers

_CHILDREN = 4
"""Evaluated labels with one more start, for each label of the width."""
ENDED, ONGOING, CROWDED = range(3)
"""Results of `go_on`: all requests have started, more rounds remain, the trail is full."""


@steering
def go_on(guide: Guide, plan: Plan, beam: Beam, rounds: int) -> int:
    """Advance so many rounds, or to the end; return the outcome."""
    counts = beam.counts
    for _ in range(rounds):
        if counts[ALIVE] == 0:
            return ENDED
        if counts[TRAILED] + len(beam.opened.floats) > beam.trail.shape[1]:
            return CROWDED
        _skip_idle_rounds(guide, beam)
        _refresh(guide, plan, beam)
        first = _open(guide, beam)
        opened, lower = first, 0
        for _ in range(STEPS):
            many = _find_children(guide, plan, beam, lower, opened)
            if many == 0:
                break
            lower = opened
            opened = _extend(guide, plan, beam, opened, many)
        is_crowded = opened > plan.width
        if is_crowded:
            for row in range(first):
                beam.opened.floats[row, SCORE] = _scored(guide, plan, beam, row, -1)
        _close(guide, plan, beam, opened, is_crowded)
        counts[NOW] += 1
    return ONGOING


@steering
def _skip_idle_rounds(guide: Guide, beam: Beam) -> None:
    """Go to the next arrival if no label can do anything before."""
    kept, counts = beam.kept, beam.counts
    if kept.integers[: counts[ALIVE], ACTIVE].max() > 0:
        return
    now, arrival = counts[NOW], NEVER
    for row in range(counts[ALIVE]):
        for i in range(len(guide.outputs)):
            if waits(kept.waiting[row], i):
                arrival = min(arrival, guide.arrivals[i])
    if arrival > now:
        # All labels lose the same slack.
        counts[NOW] = arrival
        beam.filled[0] = arrival
        beam.candidates.counts[0] = 0


@steering
def _refresh(guide: Guide, plan: Plan, beam: Beam) -> None:
    """From time to time list candidates again, and add up the costs of waiting."""
    kept, now = beam.kept, beam.counts[NOW]
    fill_rows(guide, beam.rows, beam.filled, now + kept.values.shape[1] - 1)
    candidates = beam.candidates
    if candidates.counts[0] > 0 and now < min(
        candidates.counts[1] + guide.step, candidates.counts[2]
    ):
        return
    some = np.zeros(kept.waiting.shape[1], dtype=np.uint64)
    for row in range(beam.counts[ALIVE]):
        some |= kept.waiting[row]
    dearest = plan.dearest * guide.paid[-1] / guide.last
    list_candidates(guide, some, now, dearest, plan.listed, candidates)
    kept.floats[: beam.counts[ALIVE], LATER] = 0.0
    kept.floats[: beam.counts[ALIVE], SLOPE] = 0.0
    for i in range(len(guide.outputs)):
        if guide.arrivals[i] > now or not waits(some, i):
            continue
        later, slope = line_at(guide, guide.later[guide.shapes[i]], now)
        for row in range(beam.counts[ALIVE]):
            if waits(kept.waiting[row], i):
                kept.floats[row, LATER] += later - guide.least[i]
                kept.floats[row, SLOPE] += slope


@steering
def _open(guide: Guide, beam: Beam) -> int:
    """Let each label start nothing; waiting requests lose a round."""
    opened, now = beam.opened, beam.counts[NOW]
    rows = beam.rows
    horizon = opened.values.shape[1] - 1
    time = now + horizon
    for row in range(beam.counts[ALIVE]):
        copy_label(beam.kept, row, opened, row, 0)
        opened.floats[row, LATER] += opened.floats[row, SLOPE]
        opened.integers[row, NEWEST] = -1
        value = 0.0
        for x in range(opened.integers[row, ACTIVE]):
            end = opened.ends[row, x]
            if end >= time:
                state = guide.firsts[opened.members[row, x]] + end - time
                value += rows[time % len(rows), state]
        opened.values[row, horizon] = value
    return int(beam.counts[ALIVE])


@steering
def _find_children(guide: Guide, plan: Plan, beam: Beam, lower: int, upper: int) -> int:
    """List possible starts of labels and the cheapest estimates; return their number."""
    opened, found, caps = beam.opened, beam.candidates, beam.work.caps
    now, many = beam.counts[NOW], 0
    since = now - found.counts[1]
    row1 = beam.rows[(now + 1) % len(beam.rows)]
    for row in range(lower, upper):
        is_full = guide.memory - opened.loads[row, 1] <= guide.smallest
        if is_full or opened.integers[row, ACTIVE] == guide.most:
            continue
        longest = fill_caps(guide, opened.loads[row], 0, caps)
        base = opened.floats[row, SPENT] - opened.values[row, 1]
        base += plan.urgency * opened.floats[row, LATER]
        for y in range(opened.integers[row, NEWEST] + 1, found.counts[0]):
            output = found.outputs[y]
            if output > longest or found.prompts[y] > caps[output]:
                continue
            i = found.requests[y]
            if not is_first(guide.twins, opened.waiting[row], i):
                continue
            if many == len(beam.scores):
                return many
            gain = row1[guide.firsts[i] + output - 1] - cost_at(found.costs, y, since)
            gain += plan.urgency * cost_at(found.laters, y, since + 1)
            beam.parents[many], beam.places[many], beam.scores[many] = row, y, base - gain
            many += 1
    return many


@steering
def _extend(guide: Guide, plan: Plan, beam: Beam, opened: int, many: int) -> int:
    """Start the requests of the best children; return the number of labels."""
    labels, found = beam.opened, beam.candidates
    limit = _CHILDREN * plan.width
    if many > limit:
        order = order_of(beam.scores[:many])[:limit]
        copy_into(beam.parents, beam.parents[:many][order], limit)
        copy_into(beam.places, beam.places[:many][order], limit)
        many = limit
    for child in range(many):
        parent, y = beam.parents[child], beam.places[child]
        beam.scores[child] = _scored(guide, plan, beam, parent, y)
    children = np.zeros(opened, dtype=np.int64)
    now, row = beam.counts[NOW], opened
    since = now - found.counts[1]
    for child in order_of(beam.scores[:many]):
        parent, y = beam.parents[child], beam.places[child]
        if row == opened + plan.width:
            break
        if children[parent] == plan.children:
            continue
        children[parent] += 1
        i = found.requests[y]
        copy_label(labels, parent, labels, row, 0)
        end, count = now + guide.outputs[i], labels.integers[row, ACTIVE]
        labels.members[row, count], labels.ends[row, count] = i, end
        labels.integers[row, ACTIVE] += 1
        take_out(labels.waiting[row], i)
        labels.integers[row, LEFT] -= 1
        labels.floats[row, SPENT] += cost_at(found.costs, y, since)
        labels.floats[row, LATER] -= cost_at(found.laters, y, since + 1)
        labels.floats[row, SLOPE] -= found.laters[y, 1]
        labels.integers[row, BEGAN] += now
        labels.integers[row, HASH] += beam.salts[1, i] * end - beam.salts[0, i]
        labels.integers[row, NEWEST] = y
        add_life(guide, beam.rows, i, now, 0, labels.loads[row], labels.values[row])
        labels.floats[row, SCORE] = beam.scores[child]
        place = beam.counts[TRAILED]
        beam.trail[0, place], beam.trail[1, place] = labels.integers[row, TRAIL], i
        beam.trail[2, place] = now
        labels.integers[row, TRAIL] = place
        beam.counts[TRAILED] += 1
        row += 1
    return row


@steering
def _scored(guide: Guide, plan: Plan, beam: Beam, row: int, chosen: int) -> float:
    """Return the estimated cost of a label, with or without the start of a candidate.

    It is the spent cost at the end of a greedy run from the next round to the horizon.
    """
    labels, rows, found, now = beam.opened, beam.rows, beam.candidates, beam.counts[NOW]
    loads, values, waiting, caps = beam.work
    horizon, urgency = len(values) - 1, plan.urgency
    copy_into(loads, labels.loads[row], len(loads))
    copy_into(values, labels.values[row], len(values))
    copy_into(waiting, labels.waiting[row], len(waiting))
    cost, later = labels.floats[row, SPENT], labels.floats[row, LATER]
    slope = labels.floats[row, SLOPE]
    if chosen >= 0:
        i, since = found.requests[chosen], now - found.counts[1]
        take_out(waiting, i)
        add_life(guide, rows, i, now, 0, loads, values)
        cost += cost_at(found.costs, chosen, since)
        later -= cost_at(found.laters, chosen, since + 1)
        slope -= found.laters[chosen, 1]
    for ahead in range(1, horizon):
        while guide.memory - loads[ahead + 1] > guide.smallest:
            longest = fill_caps(guide, loads, ahead, caps)
            if longest == 0:
                break
            since, most, best = now + ahead - found.counts[1], 0.0, -1
            for y in range(found.counts[0]):
                output = found.outputs[y]
                if output > longest or found.prompts[y] > caps[output]:
                    continue
                i = found.requests[y]
                if not is_first(guide.twins, waiting, i):
                    continue
                gain = urgency * cost_at(found.laters, y, since + 1)
                gain -= cost_at(found.costs, y, since)
                state = guide.firsts[i] + output
                for age in range(1, min(output, plan.depth, horizon - ahead) + 1):
                    gain += rows[(now + ahead + age) % len(rows), state - age]
                if gain > most:
                    most, best = gain, y
            if best < 0:
                break
            i = found.requests[best]
            cost += cost_at(found.costs, best, since)
            later -= cost_at(found.laters, best, since)
            slope -= found.laters[best, 1]
            take_out(waiting, i)
            add_life(guide, rows, i, now, ahead, loads, values)
        later += slope
    until = min(horizon, guide.last - now)
    for ahead in range(1, until + 1):
        cost += guide.largest[now + ahead] - values[ahead]
    cost += urgency * later
    if plan.noise > 0.0:
        cost += plan.noise * guide.largest[min(now + 1, guide.last)] * normal(beam.random)
    return float(cost)


@steering
def _close(guide: Guide, plan: Plan, beam: Beam, opened: int, is_crowded: bool) -> None:
    """Keep the best labels with different future work, with the slack of the next time."""
    labels, kept, counts, table = beam.opened, beam.kept, beam.counts, beam.table
    now, first = counts[NOW], counts[ALIVE]
    if not is_crowded:
        for row in range(opened):
            spent = labels.floats[row, SPENT] - labels.values[row, 1]
            labels.floats[row, SCORE] = spent + plan.urgency * labels.floats[row, LATER]
    table[:] = 0
    alive = 0
    for row in order_of(labels.floats[:opened, SCORE]):
        if labels.integers[row, LEFT] == 0:
            if labels.integers[row, BEGAN] < counts[BEST]:
                counts[BEST] = labels.integers[row, BEGAN]
                counts[BEST_TRAIL] = labels.integers[row, TRAIL]
            continue
        if row < first and opened > first and _is_idle(guide, labels, row, now):
            continue
        if alive == plan.width or not _is_new(table, labels.integers[row, HASH]):
            continue
        if now + 1 <= guide.last:
            labels.floats[row, SPENT] += guide.largest[now + 1] - labels.values[row, 1]
        copy_label(labels, row, kept, alive, 1)
        left = 0
        for x in range(labels.integers[row, ACTIVE]):  # without completing requests
            i, end = kept.members[alive, x], kept.ends[alive, x]
            if end > now + 1:
                kept.members[alive, left], kept.ends[alive, left] = i, end
                left += 1
            else:
                kept.integers[alive, HASH] -= beam.salts[1, i] * end
        kept.integers[alive, ACTIVE] = left
        alive += 1
    counts[ALIVE] = alive


@steering
def _is_idle(guide: Guide, labels: Labels, row: int, now: int) -> bool:
    """Whether nothing is active although a request could be."""
    if labels.integers[row, ACTIVE] > 0:
        return False
    for i in range(len(guide.outputs)):
        if guide.arrivals[i] <= now and waits(labels.waiting[row], i):
            return True
    return False


@steering
def _is_new(table: Integers, label: int) -> bool:
    """Add a hash to a table; return whether it is new."""
    label |= 1  # 0 marks an empty slot
    place = (label >> 1) % len(table)
    while table[place] != 0:
        if table[place] == label:
            return False
        place = (place + 1) % len(table)
    table[place] = label
    return True
