"""Looking for text in logs, and for the last lines, a bounded stretch at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jobs.logs import read
from jobs.logs.read import Head

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
        data = b"".join(part.data for part in window.parts if not part.gap)
        begin = window.next_offset - len(data)
        line = next((part.line for part in window.parts if not part.gap), 0)
        is_last = window.next_offset >= log.size
        # The last line may go on in the next step, which then begins with it.
        end = len(data) if is_last else data.rfind(b"\n") + 1 or len(data)
        at = data[:end].lower().find(needle)
        while at >= 0:
            if len(hits) == MOST_HITS:
                return Hits(hits=hits, next_offset=begin + at, complete=False)
            hits.append(_hit(data[:end], at, begin=begin, line=line))
            next_line = data.find(b"\n", at)
            at = data[:end].lower().find(needle, next_line) if next_line >= 0 else -1
        place = begin + end if end and window.parts else window.next_offset
    return Hits(hits=hits, next_offset=place, complete=place >= log.size)


def last_lines(log: Head, count: int) -> int:
    """Return the offset at which the last lines begin, at most 32 MiB before the end."""
    end, found = log.size, 0
    while end > 0 and log.size - end < LONGEST_TAIL_BYTES:
        begin = max(0, end - STEP_BYTES)
        window = read.read(log, offset=begin, limit=end - begin)
        data = b"".join(part.data for part in window.parts if not part.gap)[: end - begin]
        at = len(data)
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            is_final = begin + at == log.size - 1
            found += not is_final
            if found == count:
                return begin + at + 1
        end = begin
    return end


def _hit(data: bytes, at: int, *, begin: int, line: int) -> Hit:
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    shown = data[start : end if end >= 0 else len(data)]
    if at - start > SHOWN_CHARACTERS // 2:
        shown = shown[at - start - SHOWN_CHARACTERS // 2 :]
    text = shown[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
    return Hit(offset=begin + at, line=line + data[:at].count(b"\n"), text=text)
