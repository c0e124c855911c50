"""Sweeps of alpha and beta: one run of a scheduler for each of many values.

The papers ask how small a protected share may be before evictions never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeVar

from kvopt.errors import InvalidInput, shown
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.running import run
from kvopt.timetable.runs import Outcome, PolicyRun

Alpha = TypeVar("Alpha", Fraction, Decimal)

HUNDREDTHS = tuple(Fraction(k, 100) for k in range(31))
"""0, 0.01, ..., 0.30: the step of jaillet-2025-v2."""

MOST_VALUES = 10_000
"""More in a grid are refused: a mistyped step should not run for days."""


@dataclass(frozen=True)
class Setting:
    """A value of each key that is swept; None for a key that is not.

    Parameters
    ----------
    policy
        The scheduler with its other keys.
    alpha, beta
        The values.
    """

    policy: str
    alpha: Decimal | None
    beta: Decimal | None

    @property
    def label(self) -> str:
        """The scheduler as ``--policy`` takes it."""
        values = {"alpha": self.alpha, "beta": self.beta}
        keys = ",".join(f"{key}={value:f}" for key, value in values.items() if value is not None)
        return f"{self.policy}{',' if ':' in self.policy else ':'}{keys}"


@dataclass(frozen=True)
class SweptRun:
    """A setting, and what the scheduler did with it."""

    setting: Setting
    run: PolicyRun

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt sweep --json`` prints; starts are left out."""
        said = self.run.to_json() | {"completed": self.run.completed}
        kept = {key: value for key, value in said.items() if not key.startswith("starts")}
        values = (("alpha", self.setting.alpha), ("beta", self.setting.beta))
        return {key: None if value is None else float(value) for key, value in values} | kept


def grid(text: str, option: str) -> list[Decimal]:
    """Return the values of ``0.1,0.2,0.5`` or of ``FROM:TO:STEP``, both ends included.

    Examples
    --------
    >>> [str(value) for value in grid("0:0.3:0.1", "--alpha")]
    ['0', '0.1', '0.2', '0.3']
    """
    try:
        parts = [Decimal(part) for part in text.split(":" if ":" in text else ",")]
    except InvalidOperation:
        parts = []
    is_range = ":" in text
    known = all(part.is_finite() and part >= 0 for part in parts)
    if not parts or not known or (is_range and (len(parts) != 3 or not parts[2])):
        reason = f"must be values such as 0.1,0.2 or FROM:TO:STEP, got {shown(text)}"
        raise InvalidInput(reason, field=option)
    if not is_range:
        return sorted({part.normalize() for part in parts})
    low, high, step = parts
    if (high - low) / step >= MOST_VALUES:
        raise InvalidInput(f"has more than {MOST_VALUES:,} values", field=option)
    count = int((high - low) / step) + 1 if high >= low else 0
    if not count:
        raise InvalidInput(f"ends before it begins: {shown(text)}", field=option)
    return [(low + k * step).normalize() for k in range(count)]


def settings_of(
    policy: str, alphas: Sequence[Decimal] = (), betas: Sequence[Decimal] = ()
) -> list[Setting]:
    """Return every combination, each checked, beta by beta and with alpha ascending."""
    found = [
        Setting(policy, alpha, beta) for beta in (betas or (None,)) for alpha in (alphas or (None,))
    ]
    for setting in found:
        try:
            policy_from(setting.label)
        except InvalidInput as error:
            if error.field not in ("alpha", "beta") or "is not a key" not in error.reason:
                raise
            hint = "; a sweep is of a policy that has it, such as alpha-protect"
            raise InvalidInput(error.reason + hint, field=error.field) from None
    return found


def sweep(
    instance: Instance,
    settings: Sequence[Setting],
    clock: Clock = ROUNDS,
    *,
    to_the_first_loop: bool = False,
) -> Iterator[SweptRun]:
    """Yield the run of each setting as soon as it is done.

    Parameters
    ----------
    instance
        The problem.
    settings
        What to try; see `settings_of`.
    clock
        How long rounds last.
    to_the_first_loop
        Go down from the largest alpha, and of each beta no further than to the first livelock.

    Examples
    --------
    >>> from kvopt import Request
    >>> two = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])
    >>> tried = settings_of("alpha-protect", grid("0:0.9:0.1", "--alpha"))
    >>> runs = list(sweep(two, tried, to_the_first_loop=True))
    >>> [(str(run.setting.alpha), str(run.run.outcome)) for run in runs]
    [('0.9', 'livelock')]
    """
    looped: set[Decimal | None] = set()
    for setting in reversed(settings) if to_the_first_loop else settings:
        if to_the_first_loop and setting.beta in looped:
            continue
        found = SweptRun(setting, run(instance, setting.label, clock=clock))
        if found.run.outcome is Outcome.LIVELOCK:
            looped.add(setting.beta)
        yield found


def smallest_safe(runs: Sequence[SweptRun]) -> dict[Decimal | None, Decimal | None]:
    """Return, for each beta, the alpha from which on every run completed, None if there is none."""
    betas: dict[Decimal | None, list[tuple[Decimal, PolicyRun]]] = {}
    for found in runs:
        alpha = found.setting.alpha
        assert alpha is not None, "a sweep of beta alone has no smallest alpha"
        betas.setdefault(found.setting.beta, []).append((alpha, found.run))
    return {beta: smallest_safe_alpha(mine) for beta, mine in betas.items()}


def alpha_grid(
    instance: Instance, clock: Clock, alphas: Iterable[Fraction] = HUNDREDTHS
) -> list[tuple[Fraction, PolicyRun]]:
    """Run alpha-protect for each alpha."""
    return [(alpha, run(instance, f"alpha-protect:alpha={alpha}", clock=clock)) for alpha in alphas]


def smallest_safe_alpha(grid: Iterable[tuple[Alpha, PolicyRun]]) -> Alpha | None:
    """Return the alpha from which on every run of a grid completes, None if the last does not.

    A smaller alpha may complete by luck while a larger one loops: evictions that change the
    order at one moment can help or harm at the next.
    """
    safe = None
    for alpha, made in sorted(grid, key=lambda entry: entry[0], reverse=True):
        if made.outcome is Outcome.LIVELOCK:
            break
        safe = alpha
    return safe
