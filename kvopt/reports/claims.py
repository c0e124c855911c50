"""Published claims beside what was found: ``verdicts.json``."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import get_args

from kvopt.errors import InvalidInput, shown
from kvopt.experiments.studies.claims import Verdict
from kvopt.experiments.studies.claims.verdict import Judgement
from kvopt.files.reading import check_fields, check_schema, parse_json, read_text

VERDICTS = get_args(Judgement)
_VERDICT_FIELDS = dict.fromkeys(
    ("claim", "source", "published", "found", "verdict", "certificates")
).keys()


def read_verdicts(path: Path) -> tuple[Verdict, ...]:
    """Read the verdicts of a study."""
    try:
        value = parse_json(read_text(path))
        if isinstance(value, dict):
            check_schema(value, "kvopt.verdicts/1")
        top = check_fields(value, "verdicts", ("schema", "study", "verdicts"), ())
        if not isinstance(top["verdicts"], list):
            raise InvalidInput("must be a list", field="verdicts")
        return tuple(_verdict(row, path) for row in top["verdicts"])
    except InvalidInput as error:
        raise error.located(file=str(path)) from None


def _verdict(value: object, path: Path) -> Verdict:
    row = check_fields(value, "verdict", _VERDICT_FIELDS, ())
    for name in _VERDICT_FIELDS - {"certificates"}:
        if not isinstance(row[name], str):
            raise InvalidInput(f"must be text, got {shown(row[name])}", field=name)
    if row["verdict"] not in VERDICTS:
        reason = f"must be one of {', '.join(VERDICTS)}, got {shown(row['verdict'])}"
        raise InvalidInput(reason, field="verdict")
    if not isinstance(row["certificates"], list):
        raise InvalidInput("must be a list", field="certificates")
    for certificate in row["certificates"]:
        check_inside(certificate, path)
    return Verdict(**{**row, "certificates": tuple(row["certificates"])})


def check_inside(certificate: object, path: Path) -> None:
    """Refuse a certificate that would lead out of the folder."""
    if certificate is None:
        return
    if isinstance(certificate, str) and certificate:
        place = PurePosixPath(certificate)
        if not place.is_absolute() and ".." not in place.parts and "\0" not in certificate:
            return
    reason = f"must be a path inside the folder, got {shown(certificate)}"
    raise InvalidInput(reason, field="certificate", file=str(path))
