"""Tables of pandas, which is loaded at first use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from kvopt.errors import InvalidInput, shown

if TYPE_CHECKING:
    from pandas import DataFrame

_LARGEST = 2**63
"""Limit of the integers in a column of integers."""


def frame(columns: Mapping[str, Sequence[Any]]) -> DataFrame:
    """Return a DataFrame; integers stay integers if some of them are unknown."""
    import pandas

    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=_dtype(values)) for name, values in columns.items()}
    )


def _dtype(values: Sequence[Any]) -> str | None:
    """Return the type of a column with unknown integers, None if pandas may choose it."""
    numbers = [value for value in values if value is not None]
    if len(numbers) == len(values) or not all(type(value) is int for value in numbers):
        return None if values else "object"
    return "Int64" if all(abs(value) < _LARGEST for value in numbers) else "object"


def rows_of(
    table: object, needed: Collection[str], others: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a DataFrame and how an error names each; NaN and NA become None.

    Parameters
    ----------
    table
        The DataFrame.
    needed, others
        Columns that it must have, and columns that it may have; any other is refused, since a
        misspelt one must not be ignored.
    """
    from pandas import DataFrame

    if not isinstance(table, DataFrame):
        raise InvalidInput(f"must be a DataFrame, got a {type(table).__name__}", field="df")
    names = list(table.columns)
    for name in needed:
        if name not in names:
            raise InvalidInput(f"is missing; there are {shown(names)}", field=f"column {name}")
    for name in names:
        if name not in (*needed, *others):
            reason = f"is not known: must be one of {', '.join((*needed, *others))}"
            raise InvalidInput(reason, field=f"column {shown(name)}")
        if names.count(name) > 1:
            raise InvalidInput("is there twice", field=f"column {name}")
    columns = [table[name].astype(object).where(table[name].notna(), None) for name in names]
    for label, *values in zip(table.index, *columns, strict=True):
        yield f"in row {shown(label)}", dict(zip(names, values, strict=True))


def any_known(values: Sequence[object]) -> bool:
    """Whether anything is not None."""
    return any(value is not None for value in values)


def whole(value: object, field: str) -> object:
    """Return a cell as an integer if it is one: a column with gaps has 3.0 for 3."""
    if value is None:
        raise InvalidInput("is missing", field=field)
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        return int(number) if number.is_integer() else value
    return value
