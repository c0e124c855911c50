"""Files held against the JSON Schemas of the docs."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[2] / "docs" / "static" / "schemas"


def faults(kind: str, content: object) -> list[str]:
    """Return where a file differs from the schema of its kind."""
    schema = json.loads((FOLDER / f"{kind}.schema.json").read_text("utf-8"))
    return [error.json_path for error in Draft202012Validator(schema).iter_errors(content)]
