"""How much room the portal's disk has left, below which it takes in nothing large."""

import shutil
import time
from pathlib import Path
from typing import Final

from django.conf import settings

CACHED_SECONDS: Final = 2.0
_last: tuple[float, int] | None = None


def is_low() -> bool:
    """Tell whether less than `SLIPWAY_DISK_FLOOR_BYTES` are free; asked at most every 2 s."""
    return free_bytes() < settings.DISK_FLOOR_BYTES


def free_bytes() -> int:
    """Return the free bytes of the disk that holds the portal's home."""
    global _last
    now = time.monotonic()
    if _last is None or now - _last[0] > CACHED_SECONDS:
        home = Path(settings.HOME)
        there = next(path for path in (home, *home.parents) if path.exists())
        _last = now, shutil.disk_usage(there).free
    return _last[1]
