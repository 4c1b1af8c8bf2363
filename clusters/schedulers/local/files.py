"""The portal's own files in a job's folder: each is there whole or not at all."""

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any] | None:
    """Return what was written; `None` when there is no such file."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found


def write(path: Path, value: dict[str, Any], *, group: int | None = None) -> None:
    """Write a file for its owner and the group."""
    new = _beside(path)
    with new.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    new.chmod(0o640)
    if group is not None:
        os.chown(new, 0, group)
    new.rename(path)


def keep_copy(source: Path, copy: Path) -> None:
    """Put a file beside the jobs for their users to read."""
    if copy.exists() and copy.read_bytes() == source.read_bytes():
        return
    new = _beside(copy)
    shutil.copyfile(source, new)
    new.chmod(0o644)
    new.rename(copy)


def _beside(path: Path) -> Path:
    """Return a name that nobody else writes to at the same time."""
    return path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
