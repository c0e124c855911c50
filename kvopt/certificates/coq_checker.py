"""The checker of `proofs/`: extracted from Coq, with a proof that accepted claims are true.

``make proofs`` builds it in a clone; an installation does not include it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from kvopt.errors import MissingSolver
from kvopt.verify import Verdict

PROGRAM = "kvopt-proved"
_BUILT = Path(__file__).parents[2] / "proofs" / "build" / PROGRAM


def proved_checker() -> Path:
    """Return the path of the program: that of ``make proofs``, else from the search path.

    Raises
    ------
    MissingSolver
        If it is not built.
    """
    found = _BUILT if _BUILT.is_file() else shutil.which(PROGRAM)
    if found is None:
        raise MissingSolver(
            "--proved: the proved checker is not built: run `make proofs` in a clone of kvopt, "
            f"or put its {PROGRAM} on the PATH"
        )
    return Path(found)


def verify_proved(path: Path) -> Verdict:
    """Check a certificate by the proved program.

    A kind of certificate that it does not cover is neither valid nor readable.
    """
    done = subprocess.run(
        [proved_checker(), path], capture_output=True, text=True, check=False, errors="replace"
    )
    lines = tuple(done.stdout.splitlines()) or (f"UNREADABLE: {PROGRAM} ended without a verdict",)
    valid = done.returncode == 0 and lines[-1] == "VALID"
    return Verdict(valid, valid or done.returncode == 1, lines)
