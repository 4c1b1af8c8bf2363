"""The output of jobs: bytes by offset, text cut at the borders of UTF-8."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A piece of a stream as text; offsets count raw bytes, invalid bytes become U+FFFD."""

    offset: int
    next_offset: int
    complete: bool
    """Nothing follows, now or later."""
    text: str


def as_text(data: bytes, *, offset: int, complete: bool) -> Text:
    """Decode bytes that begin at `offset`; a character cut at the end waits for the next piece."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data, final=complete)
    kept = 0 if complete else len(decoder.getstate()[0])
    return Text(offset=offset, next_offset=offset + len(data) - kept, complete=complete, text=text)


def cut(data: bytes, *, most: int) -> Iterator[bytes]:
    """Yield the bytes in pieces of at most `most`, cut between characters where they are UTF-8."""
    begin = 0
    while len(data) - begin > most:
        end = border(data, begin + most)
        yield data[begin:end]
        begin = end
    yield data[begin:]


def border(data: bytes, end: int) -> int:
    """Return the last place at or before `end` that is not inside of a character."""
    for back in range(min(4, end)):
        if end - back >= len(data) or data[end - back] & 0xC0 != 0x80:
            return end - back
    return end
