"""Linear programs taken to pieces, and solved to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import pyomo.environ as pyo
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from kvopt.formulations.time_indexed import ArrayModel

Row = tuple[Any, ...]
Column = tuple[int, ...]
Program = tuple[
    dict[tuple[Row, Column], float],  # the matrix
    list[tuple[Row, bool, float]],  # rows: is it an equation, right-hand side
    dict[Column, float],  # costs
    float,  # offset
]
Contents = tuple[
    dict[tuple[str, str], float],
    dict[str, tuple[float, float]],
    dict[str, tuple[float, float, float, bool]],
    float,
]


def program_of_pyomo(model: pyo.ConcreteModel) -> Program:
    """Take a Pyomo model to pieces through its standard form."""
    form = LinearStandardFormCompiler().write(model, mixed_form=True)
    columns = [variable.index() for variable in form.columns]
    labels = [_label(row.constraint) for row in form.rows]
    matrix, costs = form.A.tocoo(), form.c.tocoo()
    entries = zip(matrix.row, matrix.col, matrix.data, strict=True)
    return (
        {(labels[row], columns[column]): value for row, column, value in entries},
        [
            (label, row.bound_type == 0, float(side))
            for label, row, side in zip(labels, form.rows, form.rhs, strict=True)
        ],
        {columns[column]: value for column, value in zip(costs.col, costs.data, strict=True)},
        float(form.c_offset[0]),
    )


def _label(constraint: Any) -> Row:
    index = constraint.index()
    return (constraint.parent_component().name, *(index if isinstance(index, tuple) else (index,)))


def program_of_arrays(model: ArrayModel) -> Program:
    """Take a program of arrays to pieces."""
    columns, labels = model.keys()
    assert (len(columns), len(labels)) == (model.num_columns, model.num_rows)
    matrix = model.matrix.tocoo()
    entries = zip(matrix.row, matrix.col, matrix.data, strict=True)
    bounds = zip(labels, model.row_lower, model.row_upper, strict=True)
    return (
        {(labels[row], columns[column]): float(value) for row, column, value in entries},
        [(label, bool(lower == upper), float(upper)) for label, lower, upper in bounds],
        {column: float(cost) for column, cost in zip(columns, model.cost, strict=True) if cost},
        0.0,
    )


def contents(highs: Any) -> Contents:
    """Return everything a model says, by name."""
    lp = highs.getLp()
    rows, columns = list(lp.row_names_), list(lp.col_names_)
    starts, index, values = (list(part) for part in _matrix(lp))
    kinds = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * len(columns)
    entries = {
        (rows[index[entry]], name): float(values[entry])
        for column, name in enumerate(columns)
        for entry in range(starts[column], starts[column + 1])
    }
    row_bounds = zip(lp.row_lower_, lp.row_upper_, strict=True)
    details = zip(lp.col_cost_, lp.col_lower_, lp.col_upper_, kinds, strict=True)
    return (
        entries,
        dict(zip(rows, row_bounds, strict=True)),
        {
            name: (cost, lower, upper, kind == highspy.HighsVarType.kInteger)
            for name, (cost, lower, upper, kind) in zip(columns, details, strict=True)
        },
        lp.offset_,
    )


def _matrix(lp: Any) -> tuple[Any, Any, Any]:
    matrix = lp.a_matrix_
    assert matrix.format_ == highspy.MatrixFormat.kColwise
    return matrix.start_, matrix.index_, matrix.value_


def read(path: Path) -> Any:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    return highs


def solve_exactly(highs: Any) -> None:
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.run() != highspy.HighsStatus.kError
