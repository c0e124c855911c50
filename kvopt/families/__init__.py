"""Named families of instances, drawn the same way everywhere."""

from __future__ import annotations

from collections.abc import Mapping

from kvopt.errors import InvalidInput, shown
from kvopt.families import chen, jaillet, partition, traffic, wang
from kvopt.families.base import Family, Parameter, Value, draw_instance
from kvopt.instance import Instance

__all__ = ["FAMILIES", "Family", "Parameter", "generate"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for module in (jaillet, wang, chen, partition, traffic)
    for family in module.FAMILIES
}

_MOST_REQUESTS = 10**7


def generate(
    family: str,
    n: int | None = None,
    memory: int | None = None,
    seed: int = 0,
    parameters: Mapping[str, Value] | None = None,
) -> Instance:
    """Draw an instance of a family; same arguments, same instance.

    Parameters
    ----------
    family
        A name in `FAMILIES`.
    n, memory
        In place of the family's own draw.
    seed
        Of the random draws.
    parameters
        Keys of the family; texts are converted.

    Examples
    --------
    >>> from kvopt import generate
    >>> instance = generate("arrival-1", n=10, seed=1)
    >>> len(instance), instance.name
    (10, 'arrival-1-n10-m32-seed1')
    """
    if family not in FAMILIES:
        reason = f"must be one of {', '.join(FAMILIES)}, got {shown(family)}"
        raise InvalidInput(reason, field="family")
    for label, value, least in (("--n", n, 0), ("--memory", memory, 1), ("--seed", seed, 0)):
        if value is not None and not least <= value:
            raise InvalidInput(f"must be at least {least}, got {shown(value)}", field=label)
    if n is not None and n > _MOST_REQUESTS:
        raise InvalidInput(f"must be at most {_MOST_REQUESTS:,}, got {n:,}", field="--n")
    return draw_instance(FAMILIES[family], n, memory, seed, parameters or {})
