"""Measurements of a server: latency and lengths of rounds by its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import check_fields
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS, BatchTime
from kvopt.problem.hardware.fitting import Measured, judged
from kvopt.problem.requests import checked_integer

_FIELDS = ("latency_ns", "rounds", "batches")


@dataclass(frozen=True)
class Measurements:
    """Times that a server measured.

    Parameters
    ----------
    latency_ns
        Total latency of the finished requests.
    rounds
        Number of rounds.
    batches
        Those of them with a length.
    """

    latency_ns: int
    rounds: int
    batches: Sequence[Measured]

    def is_slower_than(self, model: BatchTime) -> bool:
        """Whether every round lasted at least as long as by a model.

        The measured run is a schedule on the clock of the model then, only slower, so bounds hold
        for it.
        """
        return len(self.batches) == self.rounds and all(
            round(batch.milliseconds * MILLISECOND) >= batch.round_ns(model)
            for batch in self.batches
        )

    def beside(self, model: BatchTime, requests: int) -> dict[str, Any]:
        """Return the measured mean and the error of a model, by name."""
        fit = judged(model, self.batches)
        return {
            "mean_seconds": self.latency_ns / requests / NANOSECONDS,
            "rounds": fit.rows,
            "rounds_seconds": fit.seconds,
            "model_seconds": fit.model_seconds,
            "typical_error": fit.typical_error,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the member of a run file."""
        rows = [
            [batch.tokens, batch.prompts, batch.held, round(batch.milliseconds * MILLISECOND)]
            for batch in self.batches
        ]
        return dict(zip(_FIELDS, (self.latency_ns, self.rounds, rows), strict=True))


def measurements_from_json(value: object) -> Measurements:
    """Return the measurements of a run file, checked."""
    fields = check_fields(value, "measured", _FIELDS)
    latency, rounds = (checked_integer(fields[name], name, 0) for name in _FIELDS[:2])
    if not isinstance(fields["batches"], list) or not fields["batches"]:
        raise InvalidInput(f"must be a list, got {shown(fields['batches'])}", field="batches")
    return Measurements(latency, rounds, list(map(_batch, fields["batches"])))


def _batch(row: object) -> Measured:
    if not isinstance(row, list) or len(row) != 4:
        reason = f"must hold [tokens, prompts, held, ns], got {shown(row)}"
        raise InvalidInput(reason, field="batches")
    tokens, prompts, held, ns = (checked_integer(number, "batches", 0) for number in row)
    if not (prompts <= tokens and ns):
        raise InvalidInput(f"must have a length, and no more prompts, got {row}", field="batches")
    return Measured(tokens, ns / MILLISECOND, prompts, held)
