"""What a node agent posts, read strictly (pure). The protocol is in docs/agent.md."""

import binascii
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from portal.core.errors import FieldError, Invalid

MOST_BYTES: Final = 1 << 20
CHUNK_BYTES: Final = 256 * 1024
MOST_OFFSET: Final = 1 << 50
MOST_RANK: Final = 100_000
MOST_SERIES: Final = 2_000
STREAMS: Final = ("stdout", "stderr")
MOST_ROWS: Final = {"chunks": 2_000, "samples": 1_000, "checkpoints": 200}
LATEST: Final = 1 << 33  # seconds since 1970
_SERIES = re.compile(r'\A[a-z][a-z0-9_]{0,63}(?:\{[a-z_]{1,20}="[\w./:-]{1,64}"\})?\Z')
_REASON = re.compile(r"\A[a-z_]{1,30}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Bytes of one stream from a source offset on, or how many of them were dropped."""

    stream: str
    offset: int
    at: float
    data: bytes = b""
    dropped: int = 0
    reason: str = ""

    @property
    def size(self) -> int:
        """Bytes of the source that this covers."""
        return self.dropped or len(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Figures of one node at one instant, by the names of the REST API."""

    at: float
    series: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A checkpoint that is complete."""

    folder: str
    """Absolute, on the node; empty when the agent does not say."""
    name: str
    at: float
    seconds: float | None
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One post of an agent."""

    token_hash: str
    rank: int
    restart: int
    agent: Mapping[str, str]
    chunks: Sequence[Chunk] = ()
    samples: Sequence[Sample] = ()
    checkpoints: Sequence[Written] = ()
    exit: Mapping[str, Any] | None = field(default=None)


def parse(body: bytes, *, token_hash: str) -> Post:
    """Read a post. Raises `Invalid` with a pointer to the first field that is wrong."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Invalid("malformed", "The body is not JSON, or was cut.") from error
    raw = _mapping(raw, "")
    agent = {
        name: _text(value, f"/agent/{name}", most=250)
        for name, value in _mapping(raw.get("agent", {}), "/agent").items()
        if name in ("version", "boot", "host", "python")
    }
    return Post(
        token_hash=token_hash,
        rank=_whole(raw.get("rank", 0), "/rank", most=MOST_RANK),
        restart=_whole(raw.get("restart", 0), "/restart", most=MOST_RANK),
        agent=agent,
        chunks=tuple(_chunk(raw, at) for raw, at in _rows(raw, "chunks")),
        samples=tuple(_sample(raw, at) for raw, at in _rows(raw, "samples")),
        checkpoints=tuple(_written(raw, at) for raw, at in _rows(raw, "checkpoints")),
        exit=_exit(raw["exit"]) if raw.get("exit") is not None else None,
    )


def _chunk(raw: Mapping[str, Any], at: str) -> Chunk:
    stream = raw.get("stream")
    if stream not in STREAMS:
        raise _wrong(f"{at}/stream", "Give stdout or stderr.")
    offset = _whole(raw.get("offset"), f"{at}/offset", most=MOST_OFFSET)
    instant = _instant(raw.get("at"), f"{at}/at")
    if "gap" in raw:
        dropped = _whole(raw["gap"], f"{at}/gap", least=1, most=MOST_OFFSET)
        reason = raw.get("reason", "dropped")
        if not isinstance(reason, str) or not _REASON.match(reason):
            raise _wrong(f"{at}/reason", "Give a code in lower case.")
        return Chunk(stream=stream, offset=offset, at=instant, dropped=dropped, reason=reason)
    try:
        data = binascii.a2b_base64(raw.get("data", ""), strict_mode=True)
    except (ValueError, TypeError) as error:
        raise _wrong(f"{at}/data", "Give bytes in base64.") from error
    return Chunk(stream=stream, offset=offset, at=instant, data=data)


def _sample(raw: Mapping[str, Any], at: str) -> Sample:
    series = _mapping(raw.get("series"), f"{at}/series")
    if len(series) > MOST_SERIES or not all(_SERIES.match(name) for name in series):
        raise _wrong(f"{at}/series", f'Give up to {MOST_SERIES} series, such as x{{gpu="0"}}.')
    values = {name: _number(value, f"{at}/series/{name}") for name, value in series.items()}
    return Sample(at=_instant(raw.get("at"), f"{at}/at"), series=values)


def _written(raw: Mapping[str, Any], at: str) -> Written:
    seconds = raw.get("seconds")
    return Written(
        folder=_text(raw.get("folder", ""), f"{at}/folder", most=1000),
        name=_text(raw.get("name"), f"{at}/name", most=255),
        at=_instant(raw.get("at"), f"{at}/at"),
        seconds=None if seconds is None else _number(seconds, f"{at}/seconds"),
        bytes=_whole(raw.get("bytes"), f"{at}/bytes", most=MOST_OFFSET),
    )


def _exit(raw: Any) -> dict[str, Any]:
    raw = _mapping(raw, "/exit")
    code, signal = raw.get("code"), raw.get("signal")
    return {
        "code": None if code is None else _whole(code, "/exit/code", most=255),
        "signal": None if signal is None else _whole(signal, "/exit/signal", most=64),
        "started_at": _maybe_instant(raw.get("started_at"), "/exit/started_at"),
        "ended_at": _maybe_instant(raw.get("ended_at"), "/exit/ended_at"),
        "error": _text(raw.get("error") or "", "/exit/error", most=500),
    }


def _rows(raw: Mapping[str, Any], name: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    rows = raw.get(name, [])
    if not isinstance(rows, list) or len(rows) > MOST_ROWS[name]:
        raise _wrong(f"/{name}", f"Give a list of at most {MOST_ROWS[name]:,}.")
    for index, row in enumerate(rows):
        yield _mapping(row, f"/{name}/{index}"), f"/{name}/{index}"


def _mapping(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(at, "Give an object.")
    return value


def _text(value: Any, at: str, *, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise _wrong(at, f"Give text of up to {most} characters.")
    clean = value.replace("\x00", "�")
    return clean.encode("utf-8", "replace").decode()


def _whole(value: Any, at: str, *, least: int = 0, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise _wrong(at, f"Give a whole number from {least} to {most}.")
    return value


def _number(value: Any, at: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or abs(value) > 1e18 or not math.isfinite(value):
        raise _wrong(at, "Give a finite number.")
    return float(value)


def _instant(value: Any, at: str) -> float:
    instant = _number(value, at)
    if not 0 <= instant < LATEST:
        raise _wrong(at, "Give seconds since 1970.")
    return instant


def _maybe_instant(value: Any, at: str) -> float | None:
    return None if value is None else _instant(value, at)


def _wrong(at: str, message: str) -> Invalid:
    return Invalid("malformed", message, errors=[FieldError(pointer=at, message=message)])
