"""``kvopt theory``: theorems of the papers beside what is computed and simulated."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.outputs import write_output
from kvopt.errors import InvalidInput


def theory_command(
    topic: Annotated[
        str | None,
        argument("TOPIC", "One of {topics}; all of them if left out.", "topics"),
    ] = None,
    draws: Annotated[int, option("--draws", "Seeds for what is random.", "N", min=1)] = 2,
    scale: Annotated[int, option("--scale", "Simulate K times as large.", "K", min=1)] = 1,
    output: Annotated[
        Path | None, option("--output -o", "Draw a topic.", "OUT.{png,svg,pdf}")
    ] = None,
    json: common.Json = False,
) -> None:
    """Put theorems of the papers to the test: formulas, simulations, and what follows.

    The theorems are those of chen-2025, jaillet-2025 and wang-2025; `kvopt theory` without a
    topic takes a minute or two.
    """
    from kvopt.experiments.theory import TOPICS, examine

    if output is not None:
        from kvopt.show.plots import refuse_unknown_suffix

        refuse_unknown_suffix(output)
        if topic is None:
            raise InvalidInput("goes with a topic", field="-o")
    found = []
    for name in [topic] if topic is not None else TOPICS:
        if common.is_watched() and not json:
            common.say(f"{name} ...")
        found.append(examine(name, draws=draws, scale=scale))
        if not json:
            print(f"{name}: {found[-1].title}")
            for verdict in found[-1].verdicts:
                print(indent(str(verdict), "  "))
    if json:
        common.print_json({"topics": [examination.to_json() for examination in found]})
    if output is not None:
        from kvopt.show.plots import save, theory_curves

        if not found[0].curves:
            raise InvalidInput(f"{topic} has no curves", field="-o")
        figure = theory_curves(found[0]).get_figure(root=True)
        assert figure is not None, "axes of a new figure"
        write_output(output, partial(save, figure))
