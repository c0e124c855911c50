"""Environments that lack parts: what is installed here, linked, without what an extra brings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
import tomllib
import venv
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]

_COMMANDS = """
import contextlib, io, json, os, sys
from kvopt.cli import main
leave, os._exit = os._exit, sys.exit  # a command that leaves a solver behind ends the process
answers = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["kvopt", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as err:
            try:
                code = main() or 0
            except SystemExit as end:
                code = end.code or 0
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers), flush=True)
leave(0)
"""


def project() -> dict[str, Any]:
    """Return the table ``project`` of ``pyproject.toml``."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def core_environment(folder: Path) -> Path:
    """Make an environment with the core alone, this copy of kvopt in it; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for source in _files(project()["dependencies"]):
        if not (target := packages / source.name).exists():
            target.symlink_to(source)
    (packages / "kvopt.pth").write_text(f"{ROOT}\n")
    return folder / "bin" / "python"


def _files(requirements: Iterable[str]) -> set[Path]:
    """Return the files and folders of packages and of all that they need, as installed here."""
    files, left, seen = set[Path](), list(requirements), set[str]()
    while left:
        requirement = Requirement(left.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if not wanted or name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        left += found.requires or ()
        parts = {file.parts[0] for file in found.files or () if file.parts[0] != ".."}
        files |= {Path(str(found.locate_file(part))) for part in parts - {"__pycache__"}}
    return files


def commands(
    python: Path, arguments: Sequence[Sequence[object]], folder: Path
) -> list[tuple[int, str, str]]:
    """Run commands of kvopt in one process of an environment: exit status, output, messages."""
    texts = json.dumps([[str(part) for part in command] for command in arguments])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", _COMMANDS, texts],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]
