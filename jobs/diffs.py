"""Two texts side by side, as lines that came, went or stayed (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a comparison; a `hunk` says that equal lines are left out before it."""

    kind: str
    """add, del, hunk, or empty for a line that both have."""
    text: str = ""
    was: int | None = None
    """Its number in the old text, from 1."""
    now: int | None = None


def compare(old: str, new: str) -> list[Line]:
    """Return what differs, with some equal lines around it; nothing when all is equal."""
    before, after = old.splitlines(), new.splitlines()
    lines: list[Line] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        first = group[0]
        if first[1] or first[3]:
            lines.append(Line(kind="hunk", text=f"Line {first[3] + 1}"))
        for tag, was, was_end, now, now_end in group:
            lines += _equal(before, was, was_end, now) if tag == "equal" else ()
            if tag != "equal":
                lines += (Line(kind="del", text=before[n], was=n + 1) for n in range(was, was_end))
                lines += (Line(kind="add", text=after[n], now=n + 1) for n in range(now, now_end))
    return lines


def _equal(lines: list[str], was: int, end: int, now: int) -> Iterator[Line]:
    for number in range(was, end):
        at = number - was + now
        yield Line(kind="", text=lines[number], was=number + 1, now=at + 1)
