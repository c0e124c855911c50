"""The notebooks of docs/notebooks: executed, and compared with what they hold.

python tests/support/notebooks.py      executes all of them and writes their pictures again
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "notebooks"
NAMES = ("optimum", "trace", "table")

_SECONDS = re.compile(r"seconds [\d.,]+")

Notebook = dict[str, Any]


def stored(name: str) -> Notebook:
    """Return a notebook as it is in its file."""
    found: Notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return found


def executed(name: str) -> Notebook:
    """Return a notebook with what its cells give now; an error in a cell is raised."""
    nbformat: Any = import_module("nbformat")
    client: Any = import_module("nbclient").NotebookClient
    notebook = nbformat.reads(json.dumps(stored(name)), as_version=4)
    where = {"metadata": {"path": FOLDER}}
    client(notebook, resources=where, timeout=120, record_timing=False).execute()
    notebook.metadata["language_info"] = {"name": "python"}  # without the version of this machine
    found: Notebook = json.loads(nbformat.writes(notebook))
    return found


def cells_of(notebook: Notebook) -> Iterator[tuple[dict[str, Any], str, list[tuple[str, str]]]]:
    """Yield each cell with its text and its outputs: their type, and the text or picture."""
    for cell in notebook["cells"]:
        outputs: list[tuple[str, str]] = []
        for output in cell.get("outputs", []):
            data = output.get("data") or {output["name"]: output["text"]}
            kind = next(kind for kind in ("image/png", "text/plain", *data) if kind in data)
            text = "".join(data[kind])
            if kind == "stdout" and outputs and outputs[-1][0] == kind:
                text = outputs.pop()[1] + text  # a kernel may send what is printed in parts
            outputs.append((kind, text))
        yield cell, "".join(cell["source"]), outputs


def figures_of(notebook: Notebook) -> list[list[str]]:
    """Return what each cell prints, without seconds; of cells tagged ``varies`` nothing."""
    return [
        [_SECONDS.sub("seconds ...", text) for kind, text in outputs if kind != "image/png"]
        for cell, _, outputs in cells_of(notebook)
        if "varies" not in cell["metadata"].get("tags", ())
    ]


def pictures() -> dict[str, bytes]:
    """Return the pictures of the notebooks by name."""
    found = dict[str, bytes]()
    for name in NAMES:
        for _, _, outputs in cells_of(stored(name)):
            for kind, text in outputs:
                if kind == "image/png":
                    found[f"gallery-{name}-{len(found)}.png"] = b64decode(text)
    return found


def main() -> None:
    """Execute all notebooks and write their pictures."""
    for name in NAMES:
        text = json.dumps(executed(name), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
    for old in (DOCS / "images").glob("gallery-*.png"):
        old.unlink()
    for name, picture in pictures().items():
        (DOCS / "images" / name).write_bytes(picture)


if __name__ == "__main__":
    main()
