"""Buckets of samples, and the bytes that a row of a rollup keeps of them (pure)."""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

Cell = tuple[int, float, float]
"""How many samples, their sum, and the largest."""
Series = dict[str, dict[int, Cell]]
"""Name → start of a bucket, in seconds since 1970 → what is in it."""

_CELL: Final = struct.Struct("<ddd")
_SIZE: Final = struct.Struct("<I")


def floor(at: float, step: int) -> int:
    """Return the start of the bucket that an instant lies in."""
    return int(at // step) * step


def add(series: Series, name: str, start: int, cell: Cell) -> None:
    """Put more samples into a bucket."""
    cells = series.setdefault(name, {})
    count, total, most = cells.get(start, (0, 0.0, cell[2]))
    cells[start] = (count + cell[0], total + cell[1], max(most, cell[2]))


def group_of(name: str) -> str:
    """Return which row of its subject keeps the series."""
    return "gpu" if name.startswith("gpu_") else "node"


def pack(series: Mapping[str, Mapping[int, Cell]], *, start: int, step: int) -> bytes:
    """Return the series' buckets from `start` on as the bytes of a row."""
    last = max(at for cells in series.values() for at in cells)
    places = range(start, last + 1, step)
    head = json.dumps([len(places), sorted(series)]).encode()
    body = bytearray()
    for name in sorted(series):
        cells = series[name]
        for at in places:
            body += _CELL.pack(*cells.get(at, (0, 0.0, 0.0)))
    return zlib.compress(_SIZE.pack(len(head)) + head + body, 1)


def unpack(data: bytes, *, start: int, step: int) -> Iterator[tuple[str, int, Cell]]:
    """Yield name, start of the bucket and cell of every bucket with samples."""
    raw = zlib.decompress(data)
    begin = _SIZE.size + _SIZE.unpack_from(raw)[0]
    count, names = json.loads(raw[_SIZE.size : begin])
    for place, (number, total, most) in enumerate(_CELL.iter_unpack(memoryview(raw)[begin:])):
        if number:
            name, index = names[place // count], place % count
            yield name, start + index * step, (int(number), total, most)
