"""What a job's folder says about it: a job may write anything there, and only itself is hurt."""

import fcntl
import json
import os
import stat
from pathlib import Path
from typing import Any

from clusters.schedulers.local import machine, runner

ENDS = {"code": 256, "signal": 65, "started_at": 1 << 32, "ended_at": 1 << 32}
PID: dict[str, Any] = {"runner": int, "ticks": int, "boot_id": str, "started_at": (int, float)}
EXIT: dict[str, Any] = {
    "ending": str,
    "code": (int, type(None)),
    "signal": (int, type(None)),
    "started_at": (int, float),
    "ended_at": (int, float),
}
MOMENT = 0.2
RUBBISH: dict[str, Any] = {"rubbish": True}


def open_output(folder: Path, name: str) -> int | None:
    """Open a plain file of the job's side, following no link; `None` when there is none."""
    try:
        opened = os.open(folder / "run" / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise IsADirectoryError(f"{name} is not a plain file")


def pid_of(folder: Path) -> dict[str, Any] | None:
    """Read who looks after the job; `None` before anybody does."""
    try:
        line = runner.last_line(folder / "pid.json")
    except FileNotFoundError:
        return None
    return _checked(line, PID) if line else None


def end_of(folder: Path) -> dict[str, Any] | None:
    """Read how the job ended; it may have written rubbish there, or a link to elsewhere.

    A report that is there while the job's runner lives is no end: the job itself has written it.
    """
    try:
        opened = open_output(folder, "exit.json")
        if opened is None:
            return None
        with os.fdopen(opened, "rb") as file:
            found = _checked(file.read(runner.LONGEST_REPORT), EXIT)
    except OSError:
        return RUBBISH
    if found is RUBBISH or not is_looked_after(folder):
        return found
    pid = pid_of(folder)
    if pid is not None and "runner" in pid:
        machine.wait_for_end(pid["runner"], seconds=MOMENT)  # it may be about to leave
    return None if is_looked_after(folder) else found


def is_looked_after(folder: Path) -> bool:
    """Tell whether the job's runner lives: it holds the lock of `pid.json`."""
    try:
        opened = os.open(folder / "pid.json", os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(opened)
    return False


def _checked(data: bytes, shape: dict[str, Any]) -> dict[str, Any]:
    """Return a report if it is one that a runner can have written."""
    try:
        found: dict[str, Any] = json.loads(data)
        is_whole = all(isinstance(found[name], kinds) for name, kinds in shape.items())
        is_sane = all(0 <= (found.get(name) or 0) < end for name, end in ENDS.items())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return RUBBISH
    return found if is_whole and is_sane else RUBBISH
