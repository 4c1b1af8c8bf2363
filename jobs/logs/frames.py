"""The object that a finished log is compacted to (pure).

Frames of about 256 KiB, each compressed by itself, one after the other; an index beside them says
where each begins in the object, in the merged log and in every stream, and how many lines come
before. Reading anywhere takes one frame.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

FRAME_BYTES: Final = 256 * 1024
LEVEL: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A chunk as it is stored; `position` is its byte place in the merged log."""

    position: int
    line: int
    stream: str
    stream_position: int
    stream_line: int
    attempt: int
    restart: int
    rank: int
    at: float
    """Seconds since 1970, by the node's clock."""
    gap: str
    data: bytes

    def place(self, stream: str) -> int:
        """Return the byte place in the merged log (`all`) or in the row's own stream."""
        return self.position if stream == "all" else self.stream_position


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where a frame lies in the object, and what it covers: stream or `all` → (begin, end)."""

    offset: int
    size: int
    covers: Mapping[str, tuple[int, int]]


def pack(rows: Iterable[Row]) -> Iterator[tuple[bytes, Mapping[str, tuple[int, int]]]]:
    """Yield compressed frames and what each covers."""
    gathered: list[Row] = []
    size = 0
    for row in rows:
        gathered.append(row)
        size += len(row.data)
        if size >= FRAME_BYTES:
            yield _frame(gathered)
            gathered, size = [], 0
    if gathered:
        yield _frame(gathered)


def unpack(frame: bytes) -> list[Row]:
    """Return the rows of a frame."""
    plain = zlib.decompress(frame)
    head, _newline, body = plain.partition(b"\n")
    rows, begin = [], 0
    for size, *columns in json.loads(head):
        rows.append(_row(columns, body[begin : begin + size]))
        begin += size
    return rows


def write_index(frames: Sequence[Frame]) -> bytes:
    """Return the index as it is kept beside the log's cursor."""
    raw = [
        [f.offset, f.size, {name: list(span) for name, span in f.covers.items()}] for f in frames
    ]
    return zlib.compress(json.dumps(raw).encode(), LEVEL)


def read_index(index: bytes) -> list[Frame]:
    """Return the frames of an index."""
    return [
        Frame(offset=offset, size=size, covers={n: (a, b) for n, (a, b) in covers.items()})
        for offset, size, covers in json.loads(zlib.decompress(index))
    ]


def _frame(rows: Sequence[Row]) -> tuple[bytes, Mapping[str, tuple[int, int]]]:
    head = json.dumps([[len(row.data), *_columns(row)] for row in rows]).encode()
    covers = {"all": _span([(row.position, row) for row in rows])}
    for stream in {row.stream for row in rows}:
        own = [(row.stream_position, row) for row in rows if row.stream == stream]
        covers[stream] = _span(own)
    return zlib.compress(head + b"\n" + b"".join(row.data for row in rows), LEVEL), covers


def _span(rows: Sequence[tuple[int, Row]]) -> tuple[int, int]:
    place, last = rows[-1]
    return rows[0][0], place + len(last.data)


def _columns(row: Row) -> tuple[Any, ...]:
    place = (row.position, row.line, row.stream, row.stream_position, row.stream_line)
    return (*place, row.attempt, row.restart, row.rank, row.at, row.gap)


def _row(columns: Sequence[Any], data: bytes) -> Row:
    position, line, stream, stream_position, stream_line, attempt, restart, rank, at, gap = columns
    return Row(
        position=position,
        line=line,
        stream=stream,
        stream_position=stream_position,
        stream_line=stream_line,
        attempt=attempt,
        restart=restart,
        rank=rank,
        at=at,
        gap=gap,
        data=data,
    )
