"""Spans of time as people type them (pure): `2 h 30 min`, `1:30:00`, `90`; seconds inside."""

import re

_UNITS = {
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("min", "mins", "m", "minute", "minutes"), 60),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
}
_PART = re.compile(r"([0-9]{1,9})(?:[.,]([0-9]{1,3}))?\s*([a-z]+)[\s,]*")
_CLOCK = re.compile(r"(?:([0-9]{1,3})[-:])?([0-9]{1,3}):([0-9]{1,2}):([0-9]{1,2})")
_SAID = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def parse(text: str) -> int:
    """Return the seconds that a text means. Raises `ValueError` when it means none."""
    wanted = text.strip().lower().replace("\N{NO-BREAK SPACE}", " ")
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10:
        return int(wanted)
    if found := _CLOCK.fullmatch(wanted):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    total, at = 0.0, 0
    while at < len(wanted) and (part := _PART.match(wanted, at)):
        whole, tenths, unit = part.groups()
        if unit not in _UNITS:
            break
        total += float(f"{whole}.{tenths or 0}") * _UNITS[unit]
        at = part.end()
    if not wanted or at < len(wanted):
        raise ValueError(f"{text[:40]!r} is no span of time")
    return round(total)


def write(seconds: int) -> str:
    """Write seconds so that `parse` gives them back: `1 d 2 h 3 min 4 s`."""
    parts = []
    for size, word in _SAID:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {word}")
    return " ".join(parts) or "0 s"
