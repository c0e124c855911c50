"""Named families of instances, drawn the same way everywhere."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from random import Random

from kvopt.errors import InvalidInput, unknown_name
from kvopt.files.reading import without_nulls
from kvopt.problem.families import chen, conversations, jaillet, sharing, wang
from kvopt.problem.families.drawing import MAX_REQUESTS, Draw, Drawing, Family, Parameter, Value
from kvopt.problem.instance import Instance
from kvopt.problem.requests import checked_integer
from kvopt.show.summary import Names

__all__ = ["FAMILIES", "Family", "Parameter", "generate", "list_families"]

_DRAWS: dict[str, Drawing] = {
    **jaillet.DRAWS, **wang.DRAWS, **chen.DRAWS, **conversations.DRAWS, **sharing.DRAWS
}  # fmt: skip
_TABLE = tomllib.loads((Path(__file__).parent / "families.toml").read_text(encoding="utf-8"))
FAMILIES = {
    name: Family(
        name,
        draw=_DRAWS[name],
        parameters=[Parameter(key, **about) for key, about in row.pop("keys", {}).items()],
        **row,
    )
    for name, row in _TABLE.items()
}


def list_families() -> Names:
    """Return the name of every family of instances, with a line about each."""
    return Names({name: family.summary for name, family in FAMILIES.items()})


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
        Replace the family's own draw.
    seed
        Seed of the random draws.
    parameters
        Keys of the family; texts are converted.

    Raises
    ------
    InvalidInput
        Naming the parameter or key at fault.

    Examples
    --------
    >>> from kvopt import generate
    >>> instance = generate("arrival-1", n=10, seed=1)
    >>> len(instance), instance.name
    (10, 'arrival-1-n10-m32-seed1')
    """
    if family not in FAMILIES:
        raise unknown_name(family, FAMILIES, "family")
    checked_integer(seed, "seed", 0)
    sizes = without_nulls({"n": n, "memory": memory})
    for option, value in sizes.items():
        checked_integer(value, option, 1 if option == "memory" else 0)
    if n is not None and n > MAX_REQUESTS:
        raise InvalidInput(f"must be at most {MAX_REQUESTS:,}, got {n:,}", field="n")
    chosen = FAMILIES[family]
    for option in sizes:
        if option in chosen.fixed:
            raise InvalidInput(f"follows from the keys of {family}", field=option)
    values = chosen.values(parameters or {})
    draw = Draw(Random(seed), n, memory, values)
    cache, requests = chosen.draw(draw)
    # The notes have all data from which the instance was drawn.
    notes = {"family": family, "source": chosen.source, "seed": seed}
    return Instance(
        cache,
        requests,
        block_tokens=draw.integer("block_tokens") if "block_tokens" in values else None,
        name=f"{family}-n{len(requests)}-m{cache}-seed{seed}",
        notes={**notes, **sizes, **values, **draw.drawn},
    )
