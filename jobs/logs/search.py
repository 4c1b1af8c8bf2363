"""Looking for text in logs, and for the last lines, a bounded stretch at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from operator import attrgetter
from typing import Final

from jobs.logs import read
from jobs.logs.read import Head, Window

STEP_BYTES: Final = 512 << 10
STRETCH_BYTES: Final = 8 << 20
MOST_HITS: Final = 200
SHOWN_CHARACTERS: Final = 400
LONGEST_TAIL_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line that holds the text: where the text begins, the line's number from 0, and its text."""

    offset: int
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What a stretch of the log holds, and where the next begins."""

    hits: Sequence[Hit]
    next_offset: int
    complete: bool


def search(log: Head, text: str, *, offset: int) -> Hits:
    """Look through up to 8 MiB from an offset on; capital letters of ASCII count as small ones.

    At most 200 lines are returned; `next_offset` is behind the last.
    """
    needle = text.encode("utf-8", "replace").lower()
    hits: list[Hit] = []
    place, until = offset, min(log.size, offset + STRETCH_BYTES)
    while place < until:
        window = read.read(log, offset=place, limit=STEP_BYTES)
        begin, line, data = _run(window)
        goes_on = begin + len(data) == window.next_offset < log.size
        # The last line may go on in the next step, which then begins with it, or with as much of an
        # endless one as may be the beginning of the text.
        whole = data.rfind(b"\n") + 1 if goes_on else len(data)
        end = whole or len(data)
        at = data[:end].lower().find(needle)
        while at >= 0:
            if len(hits) == MOST_HITS:
                return Hits(hits=hits, next_offset=begin + at, complete=False)
            hits.append(_hit(data[:end], at, begin=begin, line=line))
            next_line = data.find(b"\n", at)
            at = data[:end].lower().find(needle, next_line) if next_line >= 0 else -1
        place = begin + (whole or end - min(len(needle) - 1, end // 2))
    return Hits(hits=hits, next_offset=place, complete=place >= log.size)


def last_lines(log: Head, count: int) -> int:
    """Return the offset at which the last lines begin, at most 32 MiB before the end."""
    end, found = log.size, 0
    while end > 0 and log.size - end < LONGEST_TAIL_BYTES:
        begin = max(0, end - STEP_BYTES)
        parts = list(read.whole(replace(log, size=end), offset=begin, step=STEP_BYTES))
        for part in reversed([part for part in parts if not part.is_hole]):
            at = len(part.data)
            while (at := part.data.rfind(b"\n", 0, at)) >= 0:
                found += part.offset + at != log.size - 1
                if found == count:
                    return part.offset + at + 1
        end = begin
    return end


def _run(window: Window) -> tuple[int, int, bytes]:
    """Return place, line and bytes of a window's first stretch without a hole."""
    is_hole = attrgetter("is_hole")
    there = dropwhile(is_hole, window.parts)
    parts = list(takewhile(lambda part: not part.is_hole, there))
    if not parts:
        return window.next_offset, 0, b""
    return parts[0].offset, parts[0].line, b"".join(part.data for part in parts)


def _hit(data: bytes, at: int, *, begin: int, line: int) -> Hit:
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    shown = data[start : end if end >= 0 else len(data)]
    if at - start > SHOWN_CHARACTERS // 2:
        shown = shown[at - start - SHOWN_CHARACTERS // 2 :]
    text = shown[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
    return Hit(offset=begin + at, line=line + data[:at].count(b"\n"), text=text)
