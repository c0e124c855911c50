"""Write the ``.lp`` files beside this script: Example 3.1 of wang-2025 in each formulation.

The one with pauses is of two requests.

Run it after a change to a formulation::

    python models/write_lp.py
"""

from __future__ import annotations

from pathlib import Path

from kvopt.bounds.windows import start_windows
from kvopt.files.atomic import atomic_path
from kvopt.formulations.export import export
from kvopt.formulations.pyomo import running_status
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.instance_files import read_instance

HERE = Path(__file__).parent
OPTIMUM = 45


def write_all(directory: Path) -> None:
    """Write the files, with the start windows that a schedule of value 45 proves."""
    instance = read_instance(HERE / "example-3.1.json")
    windows = start_windows(instance, OPTIMUM)
    for formulation in ("time-indexed", "relaxed"):
        path = directory / f"{formulation.replace('-', '_')}.lp"
        export(instance, path, formulation, "lp", windows=windows)
    model = running_status(instance, windows)
    with atomic_path(directory / "running_status.lp") as temporary:
        model.write(str(temporary), io_options={"symbolic_solver_labels": True})
    pair = read_instance(HERE / "example-pause.json")
    export(pair, directory / "pauses.lp", "pauses", windows=start_windows(pair, 14))


if __name__ == "__main__":
    with ended_by_reader():
        write_all(HERE)
