"""``kvopt warmup``: compile everything once, for images and clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvopt.cli import common

if TYPE_CHECKING:
    from kvopt.experiments.warmup import Warmed


def warmup_command(json: common.Json = False) -> None:
    """Compile everything once, so that nothing that follows has to wait for it.

    What is compiled is kept on disk, beside the code or where NUMBA_CACHE_DIR says; a second
    call finds it there.  It is for the processor of this machine.
    """
    from kvopt.experiments.warmup import warm_up
    from kvopt.kernels.compiled import folders

    done: list[Warmed] = []
    if not json:
        common.say("compiling what is not kept yet, up to some minutes in all ...")
    number: int | None = common.INTERRUPTED - 128
    try:
        for part in warm_up():
            done.append(part)
            if not json and part.signal_number is None:
                print(_line(part), flush=True)
        number = done[-1].signal_number
    except KeyboardInterrupt:
        pass
    if number is not None:
        common.say("kvopt: interrupted; what was compiled so far is kept")
    common.exit_by_signal(number)
    count, seconds = sum(part.compiled for part in done), sum(part.seconds for part in done)
    kept = folders()
    if json:
        common.print_json({
            "parts": [_member(part) for part in done], "compiled": count, "seconds": seconds,
            "folders": [str(folder) for folder in kept if folder], "kept": None not in kept,
        })  # fmt: skip
    else:
        print(f"done: {_compiled(count, seconds)}" if count else _NOTHING)
    _say_where(kept)


def _member(part: Warmed) -> dict[str, Any]:
    return {name: value for name, value in part._asdict().items() if name != "signal_number"}


_NOTHING = "done: nothing to compile, all of it was kept from before"


def _line(part: Warmed) -> str:
    if not part.compiled:
        return f"{part.name}: ready"
    return f"{part.name}: {_compiled(part.compiled, part.seconds)}"


def _compiled(count: int, seconds: float) -> str:
    return f"{count} function{'s' if count > 1 else ''} compiled in {seconds:.1f} s"


def _say_where(folders: list[Path | None]) -> None:
    """Say where machine code is not kept, or not for long."""
    from kvopt.kernels.compiled import is_temporary

    advice = "set NUMBA_CACHE_DIR to a folder that can be written, here and later"
    if None in folders:
        common.say(f"kvopt: warning: not all of it could be kept on disk: {advice}")
    temporary = [folder for folder in folders if folder and is_temporary(folder)]
    if temporary:
        where = temporary[0].parent
        common.say(f"kvopt: warning: kept among temporary files, in {where}: {advice}")
