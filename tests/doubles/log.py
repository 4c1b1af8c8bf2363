"""A log without a portal: answers the REST and the socket that the viewer in the browser speaks."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.template.loader import render_to_string
from playwright.sync_api import Page, Route, WebSocketRoute

from jobs.logs.text import border
from portal import settings

ORIGIN = "http://localhost:9"
STATIC = settings.BASE_DIR / "static"
JOB = "01JDZK4W7Q2M9X3C5V8B6N1T0R"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self' ws://localhost:9"
)
HITS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes of one source."""

    data: bytes
    stream: str = "stdout"
    rank: int = 0


@dataclass(slots=True, kw_only=True)
class FakeLog:
    """A merged log of pieces; `page` opens a viewer on it."""

    pieces: list[Piece]
    complete: bool = True
    sockets: list[WebSocketRoute] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)

    def whole(self, stream: str = "all") -> bytes:
        return b"".join(piece.data for piece in self._of(stream))

    def write(self, text: str, *, stream: str = "stdout", rank: int = 0) -> None:
        """Append, and send it along the newest socket."""
        piece = Piece(data=text.encode(), stream=stream, rank=rank)
        before = self.whole()
        self.pieces.append(piece)
        place = {"offset": len(before), "next_offset": len(before) + len(piece.data)}
        said = {**place, "line": before.count(b"\n"), "text": text, "attempt": 1, "at": 1e9}
        if self.sockets:
            message = {"type": "chunk", "stream": stream, "rank": rank, **said}
            self.sockets[-1].send(json.dumps(message))

    def open(self, page: Page, *, path: str = "", most: int | None = None) -> None:
        """Open the viewer on this log, under the portal's content policy."""
        page.route(f"{ORIGIN}/**", lambda route: self._answer(route, most))
        sockets = f"{ORIGIN.replace('http', 'ws')}/**"
        page.route_web_socket(sockets, lambda socket: self.sockets.append(socket))
        page.goto(f"{ORIGIN}/jobs/{JOB}{path}")

    def _of(self, stream: str) -> Sequence[Piece]:
        return [p for p in self.pieces if stream in ("all", p.stream)]

    def _answer(self, route: Route, most: int | None) -> None:
        url = urlsplit(route.request.url)
        file = STATIC / url.path.removeprefix("/static/")
        if url.path.startswith("/static/") and file.is_file():
            route.fulfill(path=file)
        elif url.path.endswith("/logs"):
            route.fulfill(json=self._read({k: v[0] for k, v in parse_qs(url.query).items()}))
        elif url.path.endswith("/search"):
            route.fulfill(json=self._search({k: v[0] for k, v in parse_qs(url.query).items()}))
        elif url.path.startswith("/jobs/"):
            headers = {"Content-Security-Policy": CSP, "Content-Type": "text/html"}
            route.fulfill(body=self._page(most), headers=headers)
        else:
            route.fulfill(status=404)

    def _page(self, most: int | None) -> str:
        log = render_to_string("jobs/parts/log.html", {"job": {"pk": JOB}})
        if most is not None:
            log = log.replace("data-url", f'data-most="{most}" data-url', 1)
        return (
            '<!doctype html><html lang="en" data-icons="/static/icons.svg"><meta charset="utf-8">'
            "<title>A log</title>"
            '<link rel="stylesheet" href="/static/css/slipway.css">'
            '<link rel="stylesheet" href="/static/css/portal.css">'
            '<script type="module" src="/static/js/log/viewer.js"></script>'
            f'<main class="page">{log}</main><div class="toasts"></div></html>'
        )

    def _read(self, query: dict[str, str]) -> dict[str, Any]:
        stream, limit = query["stream"], int(query["limit"])
        whole = self.whole(stream)
        offset = int(query["offset"])
        offset = max(0, len(whole) + offset) if offset < 0 else offset
        self.reads.append(offset)
        end = border(whole, min(len(whole), offset + limit))
        parts = list(self._parts(whole, stream, offset, end))
        return {
            "offset": offset,
            "next_offset": end,
            "complete": self.complete and end == len(whole),
            "size": len(whole),
            "lines": whole.count(b"\n"),
            "parts": parts,
        }

    def _parts(self, whole: bytes, stream: str, offset: int, end: int) -> Iterator[dict[str, Any]]:
        start = 0
        for piece in self._of(stream):
            low, high = max(start, offset), min(start + len(piece.data), end)
            if low < high:
                yield {
                    "offset": low,
                    "next_offset": high,
                    "line": whole.count(b"\n", 0, low),
                    "text": whole[low:high].decode("utf-8", "replace"),
                    "stream": piece.stream,
                    "rank": piece.rank,
                    "attempt": 1,
                    "at": 1_796_000_000.5,
                    "gap": None,
                }
            start += len(piece.data)

    def _search(self, query: dict[str, str]) -> dict[str, Any]:
        whole = self.whole(query["stream"])
        needle, at, hits = query["q"].encode().lower(), int(query["offset"]), []
        while len(hits) < HITS and (at := whole.lower().find(needle, at)) >= 0:
            begin, end = whole.rfind(b"\n", 0, at) + 1, whole.find(b"\n", at)
            text = whole[begin:end].decode("utf-8", "replace")
            hits.append({"offset": at, "line": whole.count(b"\n", 0, at), "text": text})
            at = end
        complete = at < 0
        return {"hits": hits, "next_offset": len(whole) if complete else at, "complete": complete}
