"""The time-indexed integer program where requests may pause: the time of every token.

As a script it solves an instance::

    python models/pauses.py INSTANCE [--memory M] [--solver NAME] [--time-limit S]

and Pyomo's own command writes it for any solver::

    pyomo convert --format=lp --output=OUT.lp models/pauses.py INSTANCE
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyomo.environ as pyo

from kvopt.formulations.pyomo import time_indexed_with_pauses
from kvopt.formulations.pyomo.script import Options, parser, requested_instance, run
from kvopt.kernels.pipes import ended_by_reader

EXAMPLE = Path(__file__).with_name("example-pause.json")


def pyomo_create_model(options: Options = None, model_options: Options = None) -> pyo.ConcreteModel:
    """Build the model for ``pyomo convert``, of two requests when no file is given."""
    return time_indexed_with_pauses(requested_instance(options, model_options, EXAMPLE))


if __name__ == "__main__":
    with ended_by_reader():
        arguments = parser("Solve the time-indexed integer program with pauses.").parse_args()
        sys.exit(run(time_indexed_with_pauses, arguments))
