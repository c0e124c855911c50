"""Draws of a study as they are kept: found in folders, the better of two sides, packed, checked."""

from __future__ import annotations

import datetime
import io
import json
import lzma
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from zipfile import ZIP_LZMA, ZipFile, ZipInfo

import numpy as np

from kvopt import verify
from kvopt.bounds.configurations.evaluation import evaluate
from kvopt.bounds.configurations.states import Knots, States
from kvopt.errors import InvalidInput
from kvopt.files.atomic import atomic_path
from kvopt.files.reading import parse_json, read_text
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_from_json
from kvopt.studies import Record
from kvopt.studies.record_lines import lines_of
from kvopt.timetable.schedule_files import read_schedule
from kvopt.verify.step_budget import MOST_STATED
from kvopt.version import __version__

_COARSE = (16, 32, 64)
"""Denominators of the prices of states that are kept, the first that costs little enough."""
_LOST = Fraction(3, 2000)
"""Share of a bound that rounding may cost: a width of 3% becomes one of 3.15%."""
_COARSE_WITH_SEARCH = 32
"""Denominator of prices where a search follows, which finds the same bound in a little longer."""
_LOST_WITH_SEARCH = Fraction(1, 200)
"""Share that it may cost to leave the search out, which has up to five times as many prices."""

Draw = dict[str, Any]
"""A line: records, their certificate, and how each side came about."""


# ----------------------------------------------------------------------------------- what was found


def draws_of(folder: Path) -> Iterator[Draw]:
    """Yield what a folder of a study holds of each draw that has a certificate."""
    by_draw: dict[str, dict[str, Record]] = {}
    for record in lines_of(folder):
        if record.policy is not None and record.certificate is not None:
            by_draw.setdefault(record.instance.hash, {})[record.policy] = record
    for mine in by_draw.values():
        first, *_ = mine.values()
        path = folder / str(first.certificate)
        if path.is_file():
            day = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
            facts = {"version": first.versions["kvopt"], "date": day, "seconds": first.seconds}
            yield {
                "upper": {"by": first.found_by, **facts},
                "lower": {"by": first.bounded_by, **facts},
                "records": [record.to_json() for record in mine.values()],
                "certificate": json.loads(path.read_text()),
            }


def with_schedules(kept: Iterable[Draw], folder: Path, seconds: float) -> Iterator[Draw]:
    """Yield draws for which a folder has a better schedule, with this one."""
    if not folder.is_dir():
        raise InvalidInput("is no folder", file=str(folder))
    draws = {hash_of(draw): draw for draw in kept}
    for path in sorted(folder.glob("*.json")):
        draw = draws.get(_instance_named_in(path))
        if draw is None:
            continue
        schedule = read_schedule(path, instance_from_json(draw["certificate"]["instance"]))
        if schedule.objective < _value(draw, "upper"):
            day = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
            upper = {"value": schedule.objective, "starts": list(schedule.starts)}
            facts = {"by": "exact", "version": __version__, "date": day, "seconds": seconds}
            certificate = {**draw["certificate"], "upper": upper}
            yield with_values({**draw, "upper": facts, "certificate": certificate})


def _instance_named_in(path: Path) -> str:
    """Return the hash of the instance that a file of a schedule is for."""
    try:
        content = parse_json(read_text(path))
    except InvalidInput as error:
        raise error.located(file=str(path)) from None
    if not isinstance(content, dict) or not isinstance(content.get("instance"), str):
        raise InvalidInput("names no instance by its hash", file=str(path))
    return str(content["instance"])


def better(old: Draw, new: Draw) -> Draw:
    """Return a draw with the better of two schedules and the better of two bounds."""
    found = dict(new)
    for side, sign in (("upper", -1), ("lower", 1)):
        if sign * _value(old, side) > sign * _value(new, side):
            found[side] = old[side]
            found["certificate"] = {**found["certificate"], side: old["certificate"][side]}
    return with_values(found)


def coarser(draw: Draw) -> Draw:
    """Return a draw whose bound takes fewer bytes, the same one if that cost too much of it.

    What its certificate says is believed here: what comes out is verified before it is kept.
    """
    lower, upper = draw["certificate"]["lower"], draw["certificate"]["upper"]
    proof = lower["proof"]
    if proof["kind"] == "split":
        return _with_proofs(draw, _with_coarse_search)
    if proof["kind"] != "configurations" or _is_coarse(proof):
        return draw
    instance = instance_from_json(draw["certificate"]["instance"])
    known, lost = lower["value"], _LOST_WITH_SEARCH if proof["searched"] else _LOST
    is_optimum = upper is not None and upper["value"] == known
    least = known if is_optimum else known * (1 - lost)
    for denominator in _COARSE:
        stage = _rounded(proof["stages"][-1], denominator)
        value = _value_of(stage, instance)
        if value >= least:
            rest = {"target": None, "searched": False, "stages": [stage]}
            return _with_lower(draw, value, {**proof, **rest})
    return _with_proofs(draw, _with_coarse_search)


def _with_coarse_search(proof: Draw) -> Draw:
    """Return a proof with coarse prices where a search follows, which makes up for them."""
    if not proof["searched"] or _is_coarse(proof):
        return proof
    return _with_stages(proof, lambda stage: _rounded(stage, _COARSE_WITH_SEARCH))


def _with_stages(proof: Draw, change: Callable[[Draw], Draw]) -> Draw:
    return {**proof, "stages": [change(stage) for stage in proof["stages"]]}


def _is_coarse(proof: Draw) -> bool:
    finest = max(stage["denominator"] for stage in proof["stages"])
    return bool(finest <= (_COARSE_WITH_SEARCH if proof["searched"] else _COARSE[-1]))


def _rounded(stage: Draw, denominator: int) -> Draw:
    """Return prices of states over another denominator, the nearest ones."""
    exact, old = np.array(stage["numerators"]), stage["denominator"]
    numerators = (2 * exact * denominator + old) // (2 * old)
    return {**stage, "denominator": denominator, "numerators": numerators.tolist()}


def _value_of(stage: Draw, instance: Instance) -> int:
    """Return the bound that prices of states give without a search."""
    knots, states = Knots(np.array(stage["times"])), States.of(instance)
    numerators, denominator = np.array(stage["numerators"]), stage["denominator"]
    starts = states.all_starts(knots.last)
    return evaluate(states, knots, starts, numerators, denominator).bound


def _with_lower(draw: Draw, value: int, proof: Draw) -> Draw:
    found = {**draw["certificate"], "lower": {"value": value, "proof": proof}}
    return with_values({**draw, "certificate": found})


def with_values(draw: Draw) -> Draw:
    """Return a draw with records of what its certificate says."""
    records = [
        replace(
            Record.from_json(row),
            upper=_value(draw, "upper"),
            lower=_value(draw, "lower"),
            found_by=draw["upper"]["by"],
            bounded_by=draw["lower"]["by"],
        )
        for row in draw["records"]
    ]
    return {**draw, "records": [record.to_json() for record in records]}


def _value(draw: Draw, side: str) -> int:
    return int(draw["certificate"][side]["value"])


def hash_of(draw: Draw) -> str:
    """Return the hash of the instance of a draw."""
    return str(draw["certificate"]["hash"])


# -------------------------------------------------------------------------------------------- files


def read(path: Path, *, priced: bool = True) -> list[Draw]:
    """Return the draws that a file keeps, none if it is not there.

    What reads no proof can go without their prices, which take most of the time.
    """
    if not path.exists():
        return []
    with lzma.open(path, "rt", encoding="utf-8") as lines, ZipFile(prices_beside(path)) as prices:
        draws = map(json.loads, lines)
        return [_with_prices(draw, prices) for draw in draws] if priced else list(draws)


def write(draws: Iterable[Draw], path: Path) -> None:
    """Write draws into a file, and beside it the prices of states of their bounds.

    Prices take nearly all of the bytes. In a file of their own they need not be written again
    where something else changes.
    """
    path.parent.mkdir(exist_ok=True)
    with atomic_path(path) as text, atomic_path(prices_beside(path)) as prices:
        with ZipFile(prices, "w") as archive:
            rows = [_without_prices(draw, archive) for draw in draws]
        lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        text.write_bytes(lzma.compress("".join(lines).encode()))


def prices_beside(path: Path) -> Path:
    """Return the file of the prices of the draws of a file."""
    return path.with_name(path.name.removesuffix(".jsonl.xz") + ".prices.zip")


def _without_prices(draw: Draw, archive: ZipFile) -> Draw:
    """Return a draw whose prices of states are in an archive, as changes from time to time.

    They stand there state by state, as those of one state are alike, and without a sign.
    """

    def moved(stage: Draw) -> Draw:
        rows = np.array(stage["numerators"])
        changes = np.diff(rows, axis=0).T
        positive = np.where(changes < 0, -2 * changes - 1, 2 * changes)
        file = io.BytesIO()
        np.save(file, positive.astype(np.min_scalar_type(positive.max(initial=0)), order="C"))
        member = ZipInfo(f"{len(archive.namelist())}.npy")  # its date is always the same
        archive.writestr(member, file.getvalue(), ZIP_LZMA)
        return {**stage, "numerators": rows[0].tolist(), "changes": member.filename}

    return _with_proofs(draw, lambda proof: _with_stages(proof, moved))


def _with_prices(draw: Draw, archive: ZipFile) -> Draw:
    """Return a draw as it was before it was written."""

    def restored(stage: Draw) -> Draw:
        rest = {name: value for name, value in stage.items() if name != "changes"}
        positive = np.load(io.BytesIO(archive.read(stage["changes"]))).T.astype(np.int64)
        changes = np.where(positive % 2, -(positive + 1), positive) // 2
        rows = np.vstack([stage["numerators"], changes])
        return {**rest, "numerators": rows.cumsum(axis=0).tolist()}

    return _with_proofs(draw, lambda proof: _with_stages(proof, restored))


def _with_proofs(draw: Draw, change: Callable[[Draw], Draw]) -> Draw:
    """Return a draw whose proof by prices of states is changed, or those of its parts."""

    def changed(proof: Draw) -> Draw:
        if proof["kind"] == "split":
            parts = [{**part, "proof": changed(part["proof"])} for part in proof["parts"]]
            return {**proof, "parts": parts}
        return change(proof) if proof["kind"] == "configurations" else proof

    certificate, lower = draw["certificate"], draw["certificate"]["lower"]
    found = {**lower, "proof": changed(lower["proof"])}
    return {**draw, "certificate": {**certificate, "lower": found}}


# ------------------------------------------------------------------------------------------- checks


def fault_of(draw: Draw, places: Container[str]) -> str | None:
    """Say what is wrong with a draw, None if its records follow from its certificate.

    Its instance has to be one of those that were drawn again.
    """
    records = [Record.from_json(row) for row in draw["records"]]
    instance, certificate = records[0].instance, draw["certificate"]
    if hash_of(draw) not in places or any(r.instance.hash != hash_of(draw) for r in records):
        return f"{instance.name}: the study draws no such instance"
    runs = {run["policy"]: run["value"] for run in certificate["policies"]}
    for record in records:
        sides = {"upper": record.upper, "lower": record.lower}
        said = {side: certificate[side]["value"] for side in sides}
        if sides != said or runs[record.policy] != record.value:
            return f"{instance.name}: its certificate says otherwise than its records"
    with written(draw) as path:
        found = verify(path, MOST_STATED)
    return None if found.valid else f"{instance.name}: {found.lines[-1]}"


@contextmanager
def written(draw: Draw) -> Iterator[Path]:
    """Write the certificate of a draw into a file, for so long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        path.write_text(json.dumps(draw["certificate"]))
        yield path
