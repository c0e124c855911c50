"""The program with running variables, corrected, and as it was printed.

As a script it solves an instance; ``--as-printed`` shows what the print computes::

    python models/running_status.py INSTANCE [--as-printed] [--memory M] [--solver NAME]

and Pyomo's own command writes it for any solver::

    pyomo convert --format=lp --output=OUT.lp models/running_status.py INSTANCE
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pyomo.environ as pyo

from kvopt.formulations.pyomo import running_status
from kvopt.formulations.pyomo.script import Options, parser, requested_instance, run
from kvopt.kernels.pipes import ended_by_reader

EXAMPLE = Path(__file__).with_name("example-3.1.json")


def pyomo_create_model(options: Options = None, model_options: Options = None) -> pyo.ConcreteModel:
    """Build the model for ``pyomo convert``, of Example 3.1 when no file is given."""
    return running_status(requested_instance(options, model_options, EXAMPLE))


def main() -> int:
    """Solve the instance of the command line."""
    arguments = parser("Solve the program with running variables.")
    arguments.add_argument(
        "--as-printed", action="store_true", help="hold one token less, as the paper prints it"
    )
    given = arguments.parse_args()
    return run(partial(running_status, as_printed=given.as_printed), given)


if __name__ == "__main__":
    with ended_by_reader():
        sys.exit(main())
