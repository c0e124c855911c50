"""Check all claims of a certificate, and report the proved ones."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kvopt.verify.certified_problem import Problem, problem_of
from kvopt.verify.check_eager import check_eager
from kvopt.verify.check_machine_time import check_machine_time
from kvopt.verify.check_proofs import modules_of, value_of_proof
from kvopt.verify.check_runs import Times, checked_run, times_of, uncovered
from kvopt.verify.check_slo import check_in_time
from kvopt.verify.step_budget import Work, as_decimal, quoted, refuse


def report_on(certificate: dict[str, Any], work: Work | None = None) -> list[str]:
    """Check everything; return checked and proved claims."""
    work, problem = work or Work(), problem_of(certificate)
    lines = _words(certificate, problem)
    sides = []
    for side in (*certificate.get("narrower", []), certificate):
        lines += _checked_side(problem, side, work)
        values = (claim and claim["value"] for claim in (side["upper"], side["lower"]))
        sides.append((side["scope"], *values))
    scope = certificate["scope"]
    problem = problem.within(scope)
    rows: dict[str, list[str]] = defaultdict(list)  # by the narrowest scope that covers a run
    beyond, runs = list[str](), certificate.get("policies", [])
    reached: list[Times | None] = []
    for claim in runs:
        name, value, times = quoted(claim["policy"]), claim["value"], None
        if value is None:
            lines.append(f"  {name}: {claim['outcome']}, nothing is claimed")
        else:
            line, times = _checked_run(problem, claim, name, work)
            lines.append(line)
            if among := [side for side in sides if not uncovered(claim, side[0])]:
                side_scope, *ends = among[0]  # narrower scopes come first
                rows[side_scope].append(f"  {name} is {_ratio(value, *ends)}")
            else:
                used = uncovered(claim, scope)
                beyond.append(f"  of {name} nothing: it has {used}, which the bounds do not cover")
        reached.append(times)
    in_time: list[str] = []
    if "slo" in certificate:
        checked, in_time = check_in_time(certificate, problem, reached, work)
        lines.append(checked)
    if (claim := certificate.get("machine_time")) is not None:
        checked, proved = check_machine_time(problem, claim, work)
        lines.append(checked)
        in_time.append(proved)
    if (eager := certificate.get("eager")) is not None:
        lines.append(check_eager(problem, eager, work))
    lines.append("proved:")
    if eager is not None:
        lines.append(
            "  there is one eager schedule of whole prompts; what may be gained comes from holding "
            "requests back or from pieces"
        )
    for side_scope, upper, lower in sides:
        lines += _conclusions(problem, upper, lower)
        if side_scope == scope:
            rows[side_scope] += [*beyond, *in_time]
        lines += rows[side_scope]
        if lower is not None or (side_scope == scope and in_time):
            lines.append(covered_by(side_scope))
    if beyond or any(run["value"] is not None for run in runs):
        lines.append("not checked: that a policy would decide as recorded under its name")
    return [*lines, _modules(certificate), "VALID"]


def _words(certificate: dict[str, Any], problem: Problem) -> list[str]:
    """State the problem."""
    memory, block = problem.memory, problem.block
    everywhere = f" on each of {problem.workers:,} workers" * (problem.workers > 1)
    lines = [
        f"instance {quoted(certificate['instance'].get('name', ''))}: "
        f"{len(problem.requests):,} requests, memory {memory:,}{everywhere}, {certificate['hash']}"
    ]
    if problem.weights:
        lines.append("each latency counts as many times as the weight of its request says")
    if problem.max_active is not None:
        lines.append(f"at most {problem.max_active:,} requests may be active together{everywhere}")
    if problem.paths:
        lines.append(
            f"prefixes: {sum(problem.nodes):,} tokens in {len(problem.nodes):,} nodes "
            "that several requests share, held once while any is active"
        )
    if block > 1:
        lines.append(f"memory in {memory // block:,} whole blocks of {block:,} tokens")
    if problem.clock is None:
        return [*lines, "checked in integers, from the instance alone:"]
    return [*lines, problem.clock.words(), "checked in integers of nanoseconds, from these alone:"]


def _checked_run(
    problem: Problem, claim: dict[str, Any], name: str, work: Work
) -> tuple[str, Times]:
    """Check a run; return the line about it, and times as of `checked_run`."""
    peak, times = checked_run(problem, claim, name, work)
    lost = f" with {len(claim['lost']):,} evictions" if claim.get("lost") else ""
    line = f"  {name} {claim['value']:,}: its {times_of(claim)}{lost} give it"
    return f"{line} and hold {peak:,} tokens at most", times


def _checked_side(problem: Problem, side: dict[str, Any], work: Work) -> list[str]:
    """Check both claims about the optimum of a scope."""
    scope, upper, lower, lines = side["scope"], side["upper"], side["lower"], []
    if upper is not None:
        used = uncovered(upper, scope)
        refuse(used, f"upper: has {used}, which its scope does not cover")
        lines.append(_checked_run(problem, upper, "upper", work)[0])
    if lower is not None:
        value = lower["value"]
        steps = lower.get("relaxations", ())
        proved, how = value_of_proof(problem.within(scope), lower["proof"], work, steps)
        refuse(value > proved, f"lower: says {value:,}, the proof gives {proved:,}")
        is_wrong = upper is not None and value > upper["value"]
        refuse(is_wrong, "lower is above upper: an error of the checker itself")
        lines.append(f"  lower {value:,}: its proof by {how} gives {proved:,}")
    return lines


def _modules(certificate: dict[str, Any]) -> str:
    """Name the modules that found this valid, which a reader has to trust."""
    claims = [*certificate.get("narrower", []), certificate]
    proofs = [side["lower"]["proof"] for side in claims if side["lower"] is not None]
    proofs += [certificate["slo"]["proof"]] if "slo" in certificate else []
    names = {"certificate_shape", "certified_problem", "check_runs", "report", "step_budget"}
    names = names.union(*map(modules_of, proofs))
    names |= {"check_eager"} if "eager" in certificate else set()
    further = {f"check_{name}" for name in ("slo", "machine_time") if name in certificate}
    names |= further | ({"check_seconds"} if further else set())  # lines, and machine times
    names |= {"check_prices"} if "slo" in certificate else set()  # cheapest times
    return f"checked by {len(names)} modules of kvopt/verify: {', '.join(sorted(names))}"


def _conclusions(problem: Problem, upper: int | None, lower: int | None) -> list[str]:
    """State the claims that both sides prove; in seconds as mean latencies, rounded outward."""
    many = len(problem.requests)
    latency = "total weighted latency" if problem.weights else "total latency"
    lines, a, unit, under = list[str](), "", "", ""
    high, low = f"{upper or 0:,}", f"{lower or 0:,}"
    if problem.clock is not None:
        latency, a, unit, under = "mean latency", "a ", " s", " s under this batch-time model"
        # Microseconds of a second; nanoseconds of one in all latencies, as often as they count.
        micros, scale = 1_000_000, max(sum(problem.weights) or many, 1) * 1000
        high = f"{-(-(upper or 0) // scale) / micros:,.6f}"
        low = f"{(lower or 0) // scale / micros:,.6f}"
    if lower is not None:
        lines.append(
            f"  no schedule of these {many:,} requests has {a}{latency} below {low}{under}"
        )
    if upper is not None:
        lines.append(f"  a schedule of {latency} {high}{unit} is {_ratio(upper, None, lower)}")
    return lines


def _ratio(value: int, upper: int | None, lower: int | None) -> str:
    """Return the bounds on value / optimum, rounded outward, in words."""
    if value == lower:
        return "optimal"
    high = f"at most {as_decimal(-(-1000 * value // lower))}" if lower and lower > 0 else ""
    low = f"at least {as_decimal(1000 * value // upper)}" if upper and upper > 0 else ""
    return (" and ".join(filter(None, (high, low))) or "any number of") + " times the optimum"


def covered_by(scope: str) -> str:
    """Return the line of a report that names the schedules that its lower bound covers."""
    pauses, chunks = "pauses" in scope, "chunks" in scope
    missing = ["pausing a request with its tokens kept"] * (not pauses)
    missing += ["processing a prompt in pieces"] * (not chunks)
    return (
        "covered: every schedule that "
        + "holds a shared prefix once and " * ("sharing" in scope)
        + "processes each prompt at once or in pieces, and " * chunks
        + "runs each request to its end"
        + (", pauses it with its tokens kept, " if pauses else " once started, ")
        + "or evicts it, loses its tokens and starts it again"
        + f"; not covered{', in seconds' * pauses}: {', or '.join(missing)}" * bool(missing)
    )
