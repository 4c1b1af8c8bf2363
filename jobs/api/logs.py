"""REST of logs: a piece as text, as parts with their sources, the whole raw, and search."""

import re
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any, Final

from channels.db import database_sync_to_async
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import filters, selectors
from jobs import serializers as shapes
from jobs.api.jobs import JobView
from jobs.logs import read, search
from jobs.logs.read import Head, Only, Part, Window
from jobs.logs.text import as_text
from portal.core.errors import Invalid

RAW_STEP: Final = 256 << 10
MOST_QUERY: Final = 500
_RANGE = re.compile(r"\Abytes=(\d{0,15})-(\d{0,15})\Z")
_STREAM = OpenApiParameter("stream", str, enum=["all", "stdout", "stderr"], description="all")
_OFFSET = OpenApiParameter("offset", int, description="in raw bytes; negative: from the end; 0")


class _TextOrJson(BaseContentNegotiation):
    """Takes `text/plain` for the raw log, and answers JSON to everybody else."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return JSONRenderer(), "application/json"


class Logs(JobView):
    """What a job has written."""

    content_negotiation_class = _TextOrJson

    @extend_schema(
        parameters=[
            _STREAM,
            _OFFSET,
            OpenApiParameter("limit", int, description="bytes, up to 1 MiB; 262144"),
            OpenApiParameter("attempt", int, description="only this attempt"),
            OpenApiParameter("rank", int, description="only this rank"),
            OpenApiParameter("tail", int, description="only so many lines before the end"),
            OpenApiParameter("parts", bool, description="`parts` with their sources, no `text`"),
            OpenApiParameter("format", str, enum=["raw"], description="like Accept: text/plain"),
            OpenApiParameter("download", bool, description="with raw: as a file"),
        ],
        responses={
            (200, "application/json"): shapes.LogSerializer,
            (200, "text/plain"): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, job: str) -> HttpResponseBase:
        """Return a piece of the log and where the next begins, or all of it as plain text."""
        row = self.job()
        wanted = filters.piece(request.query_params)
        complete = selectors.is_log_complete(row.pk)
        log = read.head(row.pk, stream=wanted.stream)
        offset = wanted.offset
        if wanted.tail is not None:
            offset = search.last_lines(log, wanted.tail)
        if _wants_text(request):
            name = f"{row.pk}-{wanted.stream}.log" if request.query_params.get("download") else ""
            return raw(log, offset=offset, asked=request.headers.get("Range", ""), name=name)
        only = Only(attempt=wanted.attempt, rank=wanted.rank)
        window = read.read(log, offset=offset, limit=wanted.limit, only=only)
        is_all = complete and window.next_offset >= window.size
        answer = {"size": window.size, "lines": window.lines}
        if request.query_params.get("parts"):
            parts = [_shown(part) for part in window.parts]
            places = {"offset": window.offset, "next_offset": window.next_offset}
            return Response({**places, "complete": is_all, **answer, "parts": parts})
        data = b"".join(part.data for part in window.parts)
        piece = as_text(data, offset=window.offset, complete=is_all)
        kept_back = window.offset + len(data) - piece.next_offset
        next_offset = window.next_offset - (kept_back if kept_back < 4 else 0)
        return Response({**asdict(piece), "next_offset": next_offset, **answer})


class SearchLogs(JobView):
    """Text in what a job has written."""

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "q", str, required=True, description="plain text, 1 to 500 characters"
            ),
            _STREAM,
            _OFFSET,
        ],
        responses=shapes.HitsSerializer,
    )
    def get(self, request: Request, job: str) -> Response:
        """Look through some MiB of the log from an offset on; go on from `next_offset`."""
        row = self.job()
        text = request.query_params.get("q", "")
        if not 1 <= len(text) <= MOST_QUERY:
            raise Invalid.at("q", f"Give 1 to {MOST_QUERY} characters to look for.")
        wanted = filters.piece(request.query_params)
        log = read.head(row.pk, stream=wanted.stream)
        offset = max(0, log.size + wanted.offset) if wanted.offset < 0 else wanted.offset
        return Response(asdict(search.search(log, text, offset=offset)))


def raw(log: Head, *, offset: int, asked: str, name: str) -> HttpResponseBase:
    """Stream the log from an offset on as it is now; `asked` is a Range header (RFC 9110)."""
    first = max(0, log.size + offset) if offset < 0 else min(offset, log.size)
    begin, end, status = first, log.size, 200
    found = _RANGE.match(asked.strip())
    if found and any(found.groups()):
        low, high = found.groups()
        begin = first + int(low) if low else max(first, log.size - int(high))
        end = min(log.size, first + int(high) + 1) if low and high else log.size
        status = 206
        if begin >= end:
            size = log.size - first
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    response = StreamingHttpResponse(
        _bytes(log, begin, end), status=status, content_type="text/plain; charset=utf-8"
    )
    response["Accept-Ranges"] = "bytes"
    response["Content-Length"] = str(end - begin)
    if status == 206:
        span = f"{begin - first}-{end - first - 1}/{log.size - first}"
        response["Content-Range"] = f"bytes {span}"
    if name:
        response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


async def _bytes(log: Head, begin: int, end: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a span; a hole has its size: its sentence, then blank lines."""
    while begin < end:
        limit = min(RAW_STEP, end - begin)
        log, window = await database_sync_to_async(_read_on)(log, begin, limit)
        if not window.parts:
            return
        for part in window.parts:
            size = min(part.next_offset, end) - part.offset
            yield part.data[:size]
            for place in range(len(part.data), size, RAW_STEP):
                yield b"\n" * min(RAW_STEP, size - place)
        begin = window.next_offset


def _read_on(log: Head, begin: int, limit: int) -> tuple[Head, Window]:
    """Read a window; a log may have been compacted since it was looked at."""
    if not log.is_archived:
        log = read.head(log.job_id, stream=log.stream)
    return log, read.read(log, offset=begin, limit=limit)


def _wants_text(request: Request) -> bool:
    if request.query_params.get("format") == "raw":
        return True
    accepted = request.headers.get("Accept", "")
    return accepted.partition(",")[0].partition(";")[0].strip() == "text/plain"


def _shown(part: Part) -> dict[str, Any]:
    text = part.data.decode("utf-8", "replace")
    return {
        "offset": part.offset,
        "next_offset": part.next_offset,
        "line": part.line,
        "text": text,
        "stream": part.stream,
        "rank": part.rank,
        "attempt": part.attempt,
        "at": part.at,
        "gap": part.gap or None,
    }
