"""``kvopt generate``: an instance of a named family."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.outputs import write_output
from kvopt.errors import InvalidInput
from kvopt.problem.families import FAMILIES, generate
from kvopt.problem.instance_files import write_instance


def families() -> str:
    """List every family with its keys, for the help text."""
    lines = ["**Families**", ""]
    for family in FAMILIES.values():
        about = [f"{family.summary}; n {family.n}, M {family.memory} ({family.source})"]
        for key in family.parameters:
            default = "" if key.default is None else f"={key.default}"
            about.append(f"-p {key.name}{default}: {key.help}")
        lines.append(f"* **{family.name}**: {'; '.join(about)}")
    return "\n".join(lines)


def generate_command(
    family: Annotated[
        str,
        argument("FAMILY", "A name from the list below.", "families"),
    ],
    output: common.Output,
    n: Annotated[int | None, option("--n", "Number of requests.", "N", min=0)] = None,
    memory: Annotated[int | None, option("--memory -m", "Cache size.", "M", min=1)] = None,
    seed: common.Seed = 0,
    parameters: Annotated[
        list[str] | None, option("--parameter -p", "A key of the family.", "KEY=VALUE")
    ] = None,
) -> None:
    """Write an instance of a named family; same arguments, same bytes."""
    keys: dict[str, str] = {}
    for text in parameters or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"must be key=value, got {text!r}", field="-p")
        if key in keys:
            raise InvalidInput("is given twice", field=f"-p {key}")
        keys[key] = value
    instance = generate(family, n=n, memory=memory, seed=seed, parameters=keys)
    about = f": {len(instance)} requests, memory {instance.memory}"
    write_output(output, partial(write_instance, instance), about)
