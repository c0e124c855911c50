"""Build sdist and wheel and use both as a user does: ``python tests/walks/package.py OUT``.

The wheel holds the package and nothing else, and every engine of it runs in a clean environment,
with HiGHS and OR-Tools loaded in either order.  The checker as one file runs alone.  The sdist,
unpacked elsewhere, makes its own environment and passes its own quick tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FORGOTTEN = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "_build", "demo-out"
)
"""What work leaves in a checkout."""


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a command that has to succeed, without the paths of this process; return its output."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder: Path, *requirements: str) -> Path:
    """Make an environment with the tested releases of what is asked for; return its programs."""
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    run(*pip, "--disable-pip-version-check", "-c", ROOT / "constraints.txt", *requirements)
    return folder / "bin"


def build(out: Path, *kinds: str) -> None:
    """Build what is asked for, ``sdist`` or ``wheel``, or both; setuptools writes beside the code.

    So it is built from a copy.
    """
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        shutil.copytree(ROOT, source, ignore=_FORGOTTEN)
        programs = environment(Path(place) / "venv", "build")
        run(programs / "python", "-m", "build", *(f"--{kind}" for kind in kinds), "-o", out, source)


def of_package(folder: Path) -> set[str]:
    """Return the files of the package, as a wheel names them."""
    files = (path for path in (folder / "kvopt").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in files if "__pycache__" not in path.parts}


def wrong_in_wheel(names: Iterable[str]) -> list[str]:
    """Return what a wheel lacks, and what it holds that does not belong there."""
    found = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    wanted = of_package(ROOT)
    missing = [f"lacks {name}" for name in sorted(wanted - found)]
    return missing + [f"holds {name}" for name in sorted(found - wanted)]


ENGINES = ("exact", "highs", "cpsat", "pyomo", "auto")
_BOTH = """
import sys
from importlib import import_module
for name in sys.argv[2:]:
    import_module(name)
import kvopt
for engine in ("cpsat", "highs", "pyomo"):
    found = kvopt.solve(sys.argv[1], engine)
    assert (found.objective, found.lower_bound) == (12, 12), (sys.argv, engine, found)
"""
_SOLVERS = ("highspy", "ortools.sat.python.cp_model")
"""Both load a library of HiGHS, and some releases cannot be loaded together."""


def try_engines(programs: Path, model: Path, folder: Path) -> None:
    """Let every engine prove an optimum, alone and with both solvers loaded in either order."""
    for engine in ENGINES:
        said = run(programs / "kvopt", "solve", model, "--engine", engine, "--json", cwd=folder)
        found = json.loads(said)
        if (found["status"], found["objective"]) != ("optimal", 12):
            sys.exit(f"{engine}: {said}")
    for order in (_SOLVERS, _SOLVERS[::-1]):
        run(programs / "python", "-c", _BOTH, model, *order, cwd=folder)
    print(f"engines: {', '.join(ENGINES)}; {' and '.join(_SOLVERS)} in both orders")


def main(out: Path) -> None:
    """Build, look inside, install, run."""
    out.mkdir(parents=True, exist_ok=True)
    build(out.resolve())
    [wheel], [sdist] = out.resolve().glob("*.whl"), out.resolve().glob("*.tar.gz")
    if wrong := wrong_in_wheel(zipfile.ZipFile(wheel).namelist()):
        sys.exit("\n".join(wrong))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        programs = environment(folder / "venv", str(wheel))
        model = ROOT / "models" / "example-ec.1.json"
        print(run(programs / "kvopt", "--version", cwd=folder).strip())
        run(programs / "kvopt", "certify", model, "--policy", "svf", "-o", "c.json", cwd=folder)
        print(run(programs / "python", "-m", "kvopt.verify", "c.json", cwd=folder).strip())
        alone = out.resolve() / "verify.pyz"
        run("make", "verify.pyz", f"OUT={alone}", f"PYZ={folder / 'pyz'}", cwd=ROOT)
        print(run(sys.executable, "-I", alone, "c.json", cwd=folder).splitlines()[-1])
        try_engines(programs, model, folder)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        [unpacked] = folder.glob("kvopt-*")
        print(run("make", "check", f"PYTHON={sys.executable}", cwd=unpacked).strip())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
