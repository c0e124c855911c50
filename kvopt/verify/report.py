"""Check all claims of a certificate, and report the proved ones."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kvopt.verify.deadlines import check_in_time
from kvopt.verify.problem import problem_of
from kvopt.verify.proofs import modules_of, value_of_proof
from kvopt.verify.runs import checked_run
from kvopt.verify.slower import check_slower, no_slower
from kvopt.verify.words import as_decimal, covered_by, quoted, times_of, uncovered
from kvopt.verify.work import Invalid, Work


def report_on(certificate: dict[str, Any], work: Work | None = None) -> list[str]:
    """Check everything; return checked and proved claims."""
    work, problem = work or Work(), problem_of(certificate)
    memory, many, clock = problem.memory, len(problem.requests), problem.clock
    instance, runs = certificate["instance"], certificate.get("policies", [])
    each = f" on each of {problem.workers:,} workers" * (problem.workers > 1)
    lines = [
        f"instance {quoted(instance.get('name', ''))}: {many:,} requests, memory {memory:,}{each}, "
        f"{certificate['hash']}"
    ]
    if problem.weights:
        lines.append("each latency counts as many times as the weight of its request says")
    if problem.after:
        lines.append(f"{len(problem.after):,} of the requests follow others, and latency counts "
                     "from their release")  # fmt: skip
    if problem.most is not None:
        lines.append(f"at most {problem.most:,} requests may be active together{each}")
    if problem.paths:
        lines.append(f"prefixes: {sum(problem.nodes):,} tokens in {len(problem.nodes):,} nodes "
                     "that several requests share, held once while any is active")  # fmt: skip
    if (block := problem.block) > 1:
        lines.append(f"memory in {memory // block:,} whole blocks of {block:,} tokens")
    if clock is None:
        lines.append("checked in integers, from the instance alone:")
    else:
        lines += [clock.words(), "checked in integers of nanoseconds, from these alone:"]
    first = certificate.get("deadlines", {}).get("aim") == "first-token"
    sides = []
    for side in (*certificate.get("narrower", []), certificate):
        scope, upper, lower = side["scope"], side["upper"], side["lower"]
        if upper is not None:
            if used := uncovered(upper, scope):
                raise Invalid(f"upper: has {used}, which its scope does not cover")
            peak, _ = checked_run(problem, upper, "upper", work)
            lines.append(
                f"  upper {upper['value']:,}: its {times_of(upper)} give it and hold {peak:,} "
                "tokens at most"
            )
        if lower is not None:
            proved, how = value_of_proof(problem.within(scope), lower["proof"], work)
            if lower["value"] > proved:
                raise Invalid(f"lower: says {lower['value']:,}, the proof gives {proved:,}")
            if upper is not None and lower["value"] > upper["value"]:
                raise Invalid("lower is above upper: an error of the checker itself")
            lines.append(f"  lower {lower['value']:,}: its proof by {how} gives {proved:,}")
        sides.append((scope, upper and upper["value"], lower and lower["value"]))
    problem, scope = problem.within(certificate["scope"]), certificate["scope"]
    machines: list[tuple[int, int]] = []
    for claim in certificate.get("slower", []):
        parts, value, how = check_slower(problem, claim, certificate["lower"], work)
        lines.append(
            f"  slower {as_decimal(parts)}: its proof by {how} gives more than {value:,} on a "
            "machine so many times slower"
        )
        machines.append((parts, value))
    rows: dict[str, list[str]] = defaultdict(list)  # by the narrowest scope that covers a run
    beyond, reached = [], []
    for claim in runs:
        name, value, times = quoted(claim["policy"]), claim["value"], None
        if value is None:
            lines.append(f"  {name}: {claim['outcome']}, nothing is claimed")
        else:
            peak, times = checked_run(problem, claim, name, work, first=first)
            lost = f" with {len(claim['lost']):,} evictions" if claim.get("lost") else ""
            lines.append(
                f"  {name} {value:,}: its {times_of(claim)}{lost} give it and hold {peak:,} "
                "tokens at most"
            )
            among = [side for side in sides if not uncovered(claim, side[0])]
            if among:
                own, *ends = among[0]
                rows[own].append(f"  {name} is {_ratio(value, *ends)}")
                rows[own] += no_slower(name, value, machines) if among[-1] == sides[-1] else []
            else:
                used = uncovered(claim, scope)
                beyond.append(f"  of {name} nothing: it has {used}, which the bounds do not cover")
        reached.append(times)
    in_time: list[str] = []
    if "deadlines" in certificate:
        checked, in_time = check_in_time(certificate, problem, reached, work)
        lines.append(checked)
    lines.append("proved:")
    for own, upper, lower in sides:
        lines += _conclusions(many, upper, lower, clock, is_weighted=bool(problem.weights))
        if own == scope:
            lines += [] if upper is None else no_slower("this schedule", upper, machines)
            rows[own] += [*beyond, *in_time]
        lines += rows[own]
        if lower is not None or (own == scope and (machines or in_time)):
            lines.append(covered_by(own))
    if beyond or any(run["value"] is not None for run in runs):
        lines.append("not checked: that a policy would decide as recorded under its name")
    return [*lines, *_modules(certificate, work), "VALID"]


def _modules(certificate: dict[str, Any], work: Work) -> list[str]:
    """Name the modules that found this valid, which a reader has to trust."""
    claims = [*certificate.get("narrower", []), certificate]
    proofs = [side["lower"]["proof"] for side in claims if side["lower"] is not None]
    proofs += [claim["proof"] for claim in certificate.get("slower", []) if "proof" in claim]
    names = {"problem", "reading", "report", "runs", "words", "pairs", "work"}
    names = names.union(*map(modules_of, proofs))
    names |= {"slower"} if certificate.get("slower") else set()
    if "deadlines" in certificate:
        names |= {"deadlines"} if certificate["clock"] == "rounds" else {"deadlines", "seconds"}
    found = sorted(names | ({"definitions"} if work.naive else set()))
    return [f"checked by {len(found)} modules of kvopt/verify: {', '.join(found)}"]


def _conclusions(
    many: int, upper: int | None, lower: int | None, clock: object, *, is_weighted: bool
) -> list[str]:
    """State the claims that both sides prove; in seconds as mean latencies, rounded outward."""
    latency = "total weighted latency" if is_weighted else "total latency"
    under, scale = "", max(many, 1) * 1000
    shown = [f"{value or 0:,}" for value in (upper, lower)]
    if clock is not None:
        latency, under = "mean latency", " s under this batch-time model"
        micros = -(-(upper or 0) // scale), (lower or 0) // scale
        shown = [f"{value / 1_000_000:,.6f}" for value in micros]
    found = []
    if lower is not None:
        a = "a " if clock else ""
        found.append(
            f"  no schedule of these {many:,} requests has {a}{latency} below {shown[1]}{under}"
        )
    if upper is not None:
        unit = " s" if clock else ""
        found.append(f"  a schedule of {latency} {shown[0]}{unit} is {_ratio(upper, None, lower)}")
    return found


def _ratio(value: int, upper: int | None, lower: int | None) -> str:
    """Return the bounds on value / optimum, rounded outward, in words."""
    if value == lower:
        return "optimal"
    most = f"at most {as_decimal(-(-1000 * value // lower))}" if lower and lower > 0 else ""
    least = f"at least {as_decimal(1000 * value // upper)}" if upper and upper > 0 else ""
    return (" and ".join(filter(None, (most, least))) or "any number of") + " times the optimum"
