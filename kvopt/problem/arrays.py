"""Arrays that hot loops take: their types, and requests in columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kvopt.problem.requests import Request

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]
"""float64 to search for prices and weights; int64, or Python integers without limit, to prove."""


def columns_of(requests: Iterable[Request]) -> tuple[Integers, Integers, Integers]:
    """Return the arrivals, the prompts and the outputs of requests.

    Examples
    --------
    >>> arrivals, prompts, outputs = columns_of([Request(0, 5, 2), Request(3, 1, 4)])
    >>> arrivals, prompts, outputs
    (array([0, 3]), array([5, 1]), array([2, 4]))
    """
    table = np.array([request.kind for request in requests], dtype=np.int64).reshape(-1, 3)
    arrivals, prompts, outputs = table.T.copy()
    return arrivals, prompts, outputs
