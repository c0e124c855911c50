"""The LP relaxation of the time-indexed program: a lower bound on every schedule.

As a script it solves an instance and prints the mean start of each request::

    python models/relaxed.py INSTANCE [--memory M] [--solver NAME] [--time-limit S]

and Pyomo's own command writes it for any solver::

    pyomo convert --format=lp --output=OUT.lp models/relaxed.py INSTANCE
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyomo.environ as pyo

from kvopt.formulations.pyomo import relaxed
from kvopt.formulations.pyomo.script import Options, parser, requested_instance, run
from kvopt.kernels.pipes import ended_by_reader

EXAMPLE = Path(__file__).with_name("example-3.1.json")


def pyomo_create_model(options: Options = None, model_options: Options = None) -> pyo.ConcreteModel:
    """Build the model for ``pyomo convert``, of Example 3.1 when no file is given."""
    return relaxed(requested_instance(options, model_options, EXAMPLE))


if __name__ == "__main__":
    with ended_by_reader():
        sys.exit(run(relaxed, parser("Solve the LP relaxation.").parse_args()))
