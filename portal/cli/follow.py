"""Following a job's log: over the socket, resumed by offset; by REST where none gets through."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from portal.cli.client import Portal
from portal.cli.failure import REFUSED, Failure

POLL_SECONDS: Final = 0.5
PIECE_BYTES: Final = 1 << 20
LONGEST_WAIT: Final = 10.0
DROPS: Final = 20
FINAL_CODES: Final = {4401: "Sign in again.", 4403: "You may not see this job (any more)."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of text of one stream."""

    text: str
    stream: str
    next_offset: int


def follow(portal: Portal, job: str, *, stream: str = "all", offset: int = 0) -> Iterator[Piece]:
    """Yield the log from an offset on until the job has ended."""
    from websockets.exceptions import InvalidHandshake, InvalidMessage

    try:
        for piece in _by_socket(portal, job, stream=stream, offset=offset):
            offset = piece.next_offset
            yield piece
    except (InvalidHandshake, InvalidMessage):
        yield from by_rest(portal, job, stream=stream, offset=offset, waits=True)


def by_rest(
    portal: Portal, job: str, *, stream: str = "all", offset: int = 0, waits: bool = False
) -> Iterator[Piece]:
    """Yield the log piece by piece; with `waits` until the job has ended."""
    while True:
        query = {"stream": stream, "offset": offset, "limit": PIECE_BYTES, "parts": 1}
        found = portal.get("jobs", job, "logs", **query)
        for part in found["parts"]:
            yield Piece(text=part["text"], stream=part["stream"], next_offset=part["next_offset"])
        moved, offset = found["next_offset"] > offset, found["next_offset"]
        if found["complete"] or (not waits and not moved):
            return
        if not moved:
            threading.Event().wait(POLL_SECONDS)


def _by_socket(portal: Portal, job: str, *, stream: str, offset: int) -> Iterator[Piece]:
    """Yield what the socket sends; a broken one is opened again where it broke off."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    drops = 0
    while True:
        try:
            with connect(
                _address(portal, job, stream=stream, offset=offset),
                subprotocols=["bearer", portal.account.token],  # type: ignore[list-item] # a NewType
                max_size=None,
            ) as socket:
                for message in socket:
                    frame: dict[str, Any] = json.loads(message)
                    if frame["type"] == "end":
                        return
                    if frame["type"] in ("chunk", "gap"):
                        offset, drops = frame["next_offset"], 0
                        source = frame.get("stream", "stderr")
                        yield Piece(text=frame["text"], stream=source, next_offset=offset)
        except ConnectionClosed as error:
            code = error.rcvd.code if error.rcvd else None
            if code in FINAL_CODES:
                raise Failure(FINAL_CODES[code], exit_code=REFUSED) from error
        except OSError as error:
            if drops >= DROPS:
                raise Failure(f"The portal stays away: {error}.", exit_code=REFUSED) from error
        drops += 1
        threading.Event().wait(min(LONGEST_WAIT, 0.25 * 2 ** min(drops, 6)))


def _address(portal: Portal, job: str, **query: str | int) -> str:
    base = portal.account.url.replace("http", "ws", 1)
    return f"{base}/ws/v1/jobs/{job}/logs?{urlencode(query)}"
