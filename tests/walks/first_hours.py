"""Both walks from an installed wheel in a clean environment: ``python tests/walks/first_hours.py``.

Prints what each step took.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import engineer
import researcher
from package import build, environment
from walking import Walk


def installed(folder: Path) -> Path:
    """Build the wheel and install it with all extras; return the Python of that environment."""
    build(folder / "dist", "wheel")
    [wheel] = (folder / "dist").glob("*.whl")
    return environment(folder / "venv", f"kvopt[all] @ {wheel.as_uri()}") / "python"


def main() -> None:
    """Walk, and print the times."""
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        python = installed(Path(place))
        print(f"{time.monotonic() - began:8.2f}  build the wheel, install kvopt[all]")
        for kind in (researcher, engineer):
            folder = Path(place) / kind.__name__
            folder.mkdir()
            walk = Walk(python, folder)
            kind.first_hour(walk)
            print(f"\n{kind.__doc__}\n\n{walk.table()}")


if __name__ == "__main__":
    main()
