"""Named families of instances, drawn the same way everywhere."""

from __future__ import annotations

from collections.abc import Mapping

from kvopt.errors import InvalidInput, shown
from kvopt.families import chen, jaillet, partition, steady, traffic, wang
from kvopt.families.base import Family, Parameter, draw_instance
from kvopt.families.draw import MOST_REQUESTS, Value
from kvopt.model.instance import Instance, checked_integer

__all__ = ["FAMILIES", "Family", "Parameter", "generate"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for module in (jaillet, wang, chen, partition, steady, traffic)
    for family in module.FAMILIES
}


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

    Raises
    ------
    InvalidInput
        Naming the option at fault as the command line spells it.

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
        if value is not None or label == "--seed":
            checked_integer(value, label, least)
    if n is not None and n > MOST_REQUESTS:
        raise InvalidInput(f"must be at most {MOST_REQUESTS:,}, got {n:,}", field="--n")
    return draw_instance(FAMILIES[family], n, memory, seed, parameters or {})
