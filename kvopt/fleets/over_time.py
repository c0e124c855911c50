"""Numbers of machines over time, and the answer that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from kvopt.fleets.trace_windows import Windows
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.show.dataframes import frame
from kvopt.show.summary import Facts, Summarised, counted, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_HOUR = 3600 * NANOSECONDS


@dataclass(frozen=True)
class WindowSizes:
    """Numbers of machines of one window.

    Parameters
    ----------
    begin
        Its begin, in units of the clock.
    arrivals, allowed
        Number of requests that arrive in it, and how many of them may miss.
    formula
        Arrival rate over service rate, rounded up: neither a bound nor known to suffice.
    proved
        No schedule does with fewer machines; None while unknown.
    sufficient
        With so many a simulation does; None while unknown.
    misses, drained
        In that simulation: requests that miss, and machine time after switching off.
    """

    begin: int
    arrivals: int
    allowed: int
    formula: int
    proved: int | None = None
    sufficient: int | None = None
    misses: int | None = None
    drained: int | None = None


@dataclass(frozen=True, repr=False)
class FleetOverTime(Summarised):
    """How many machines a service level takes in each window, and in machine hours.

    Parameters
    ----------
    problem
        The windows of the problem.
    every
        Length of the windows, as it was given.
    windows
        Both sides of each window.
    machine_time
        Proved machine time if numbers of machines may change at any time.
    scheduler
        Router and scheduler of the simulation, None without one that does.
    formula_misses
        Number of windows in which a simulation with the numbers of the formula does not attain.
    signal_number
        The signal that ended the work, if any.
    gpus
        GPUs of a machine, None if unknown.
    """

    problem: Windows
    every: str
    windows: tuple[WindowSizes, ...]
    machine_time: int
    scheduler: str | None = None
    formula_misses: int | None = None
    signal_number: int | None = None
    gpus: int | None = None

    def _sum(self, counts: Sequence[int | None]) -> int:
        return self.problem.length * sum(count or 0 for count in counts)

    @property
    def proved(self) -> int:
        """No schedule takes less machine time, in units of the clock."""
        return max(self.machine_time, self._sum([window.proved for window in self.windows]))

    @property
    def formula(self) -> int:
        """The machine time of the formula, which proves nothing."""
        return self._sum([window.formula for window in self.windows])

    @property
    def sufficient(self) -> int | None:
        """The machine time of the simulation, machines that finish their work included."""
        if self.scheduler is None:
            return None
        drained = sum(window.drained or 0 for window in self.windows)
        return self._sum([window.sufficient for window in self.windows]) + drained

    @property
    def unit(self) -> str:
        """Unit of machine time for readers."""
        return "machine rounds" if self.problem.problem.clock.is_even else "machine hours"

    def worded(self, machine_time: int | None, *, up: bool) -> str:
        """Return machine time for readers, rounded outward."""
        if self.problem.problem.clock.is_even:
            return "-" if machine_time is None else f"{machine_time:,}"
        hours = None if machine_time is None else Fraction(machine_time, _HOUR)
        return rounded(hours, up=up, places=3)

    @property
    def left(self) -> list[int]:
        """Windows without a proved number, the first is 1."""
        return [k for k, window in enumerate(self.windows, 1) if window.proved is None]

    @property
    def answer(self) -> str:
        """Return the conclusions, in sentences."""
        target = f"{self.problem.attain} with {self.problem.slo} in each window of {self.every}"
        proved = self.worded(self.proved, up=False)
        answer = f"Any covered scheduler needs at least {proved} {self.unit} for {target}; "
        if self.sufficient is None:
            answer += "no numbers of machines are known that do."
        else:
            upper = self.worded(self.sufficient, up=True)
            answer += f"with {upper} a schedule is known that does ({self.scheduler})."
        formula = self.worded(self.formula, up=True)
        answer += f" The formula of planners takes {formula}, and proves nothing"
        if self.formula_misses:
            answer += f"; {counted(self.formula_misses, 'window')} would miss with it"
        if beyond := self.problem.unavoidable:
            answer += f". Beyond the share {counted(beyond, 'request')} may miss that cannot attain"
        return f"{answer}."

    @property
    def gpu_hours(self) -> dict[str, float] | None:
        """GPU hours of the three sums, None if the GPUs of a machine are unknown."""
        if self.gpus is None or self.problem.problem.clock.is_even:
            return None
        return {name: self.gpus * value / _HOUR for name, value in self._sums().items()}

    def _sums(self) -> dict[str, int]:
        sums = {"proved": self.proved, "formula": self.formula, "sufficient": self.sufficient}
        return {name: value for name, value in sums.items() if value is not None}

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        named = {
            f"window {k}": f"{window.proved} to {window.sufficient} machines"
            for k, window in enumerate(self.windows, 1)
        }
        return {"instance": self.problem.problem.instance.name, "answer": self.answer, **named}

    @property
    def footnote(self) -> str:  # type: ignore[override]
        """Sentence about the schedules that the bounds cover."""
        return self.problem.problem.scope.sentence

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt fleet --every --json`` prints."""
        problem = self.problem.problem
        return {
            "windows": [vars(window) for window in self.windows],
            "machine_time": self._sums(),
            "any_granularity": self.machine_time,
            "gpu_hours": self.gpu_hours,
            "scheduler": self.scheduler,
            "formula_misses": self.formula_misses,
            "every": self.problem.length,
            "start_up": self.problem.start_up,
            "unit": "rounds" if problem.clock.is_even else "ns",
            "clock": problem.clock.model.to_json() if problem.clock.model else "rounds",
            "slo": str(self.problem.slo),
            "limits": self.problem.slo.limits,
            "attain": self.problem.attain,
            "gpus": self.gpus,
            "requests": len(problem.instance),
            "instance": replace(problem.instance, workers=1).hash,
            "scope": str(problem.scope),
            "answer": self.answer,
            "left": self.left,
        }

    def to_dataframe(self) -> DataFrame:
        """Return a row for each window; its begin is in rounds, or in seconds."""
        scale = self.problem.problem.clock.scale
        columns = {
            name: [getattr(window, name) for window in self.windows]
            for name in WindowSizes.__dataclass_fields__
        }
        columns["begin"] = [begin / scale for begin in columns["begin"]]
        return frame(columns)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw both sides and the formula over time, above the arrivals.

        Parameters
        ----------
        ax
            Axes to draw on; by default a new figure.
        """
        from kvopt.show.plots import fleet_over_time
        from kvopt.show.plots.style import figure_of

        clock = self.problem.problem.clock
        scale, unit = (1, "rounds") if clock.is_even else (_HOUR, "hours")
        borders = [self.problem.begin(k) / scale for k in range(len(self.windows) + 1)]
        curves: dict[str, list[int | None]] = {
            "sufficient": [window.sufficient for window in self.windows],
            "proved": [window.proved for window in self.windows],
            "formula of planners, no bound": [window.formula for window in self.windows],
        }
        load = [window.arrivals for window in self.windows]
        return figure_of(fleet_over_time(borders, load, curves, f"time, {unit}", ax))
