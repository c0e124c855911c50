"""``kvopt warmup``: compile everything once, for images and clusters."""

from __future__ import annotations

import signal
from pathlib import Path
from time import monotonic

from kvopt.cli import common


def warmup_command(json: common.Json = False) -> None:
    """Compile everything once, so that nothing that follows has to wait for it.

    What is compiled is kept on disk, beside the code or where NUMBA_CACHE_DIR says; a second
    call finds it there.  It is for the processor of this machine.
    """
    from kvopt.experiments.warmup import warm_up

    parts, kept, count, began = [], list[Path | None](), 0, monotonic()
    if not json:
        common.say("compiling what is not kept yet, up to a minute or two in all ...")
    ended = list[int]()

    def end(number: int, _: object) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)  # else the processes would be left behind
    try:
        for part in warm_up():
            parts.append({k: v for k, v in part._asdict().items() if k != "folders"})
            kept = [*dict.fromkeys(kept + part.folders)]
            count += part.compiled
            if not json:
                said = _compiled(part.compiled, part.seconds) if part.compiled else "ready"
                print(f"{part.name}: {said}", flush=True)
    except KeyboardInterrupt:
        common.say("kvopt: interrupted; what was compiled so far is kept")
        common.finish(ended[0] if ended else signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
    seconds = monotonic() - began
    if json:
        common.print_json({
            "parts": parts, "compiled": count, "seconds": seconds,
            "folders": [str(folder) for folder in kept if folder], "kept": None not in kept,
        })  # fmt: skip
    else:
        nothing = "nothing to compile, all of it was kept from before"
        print(f"done: {_compiled(count, seconds) if count else nothing}")
    _say_where(kept)


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
