"""Sockets of a job: `/ws/v1/jobs/{id}/logs?stream=all&offset=N` and `…/metrics?since=INSTANT`."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qs

from channels.db import database_sync_to_async

from jobs import filters, live, metrics, selectors
from jobs.follow import follow
from jobs.logs.read import Part
from jobs.logs.text import cut
from portal.core.errors import Invalid
from portal.teams.filters import instant
from portal.teams.sockets import TRY_AGAIN_LATER, PersonSocket

log = logging.getLogger(__name__)
FRAME_BYTES: Final = 64 << 10
DRAIN_SECONDS: Final = 30
WRONG_QUERY: Final = 4400
TOO_SLOW: Final = 4008
DONE: Final = 1000


class JobSocket(PersonSocket):
    """Speaks of one job until there is no more to say, then says `end`.

    One frame is under way at a time; whoever does not take it within 30 s is closed with 4008 and
    resumes from where it was.
    """

    speaker: "asyncio.Task[None] | None" = None
    job: Any
    team: str = ""

    async def check(self) -> None:
        """Ask whether the job is the actor's to see; hear when a role in its team changes."""
        name = self.scope["url_route"]["kwargs"]["job"]
        self.job = await database_sync_to_async(selectors.job_for)(self.actor, name)
        if not self.team:
            self.team = f"team.{self.job.team_id}"
            await self.channel_layer.group_add(self.team, self.channel_name)

    async def begin(self) -> None:
        """Start sending from where the query says."""
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        try:
            frames = self.frames({name: values[-1] for name, values in query.items()})
        except Invalid as error:
            await self.send_json({"type": "error", "message": error.errors[0].message})
            await self.close(code=WRONG_QUERY)
            return
        self.speaker = asyncio.create_task(self._speak(frames))

    def frames(self, query: Mapping[str, str]) -> AsyncGenerator[dict[str, Any], None]:
        """Return what to send, in order. Raises `Invalid` when the query is wrong."""
        raise NotImplementedError

    async def end(self) -> None:
        """Stop sending."""
        if self.speaker is not None and self.speaker is not asyncio.current_task():
            self.speaker.cancel()
            await asyncio.wait([self.speaker])
        if self.team:
            await self.channel_layer.group_discard(self.team, self.channel_name)

    async def _speak(self, frames: AsyncGenerator[dict[str, Any], None]) -> None:
        code = DONE
        try:
            async with contextlib.aclosing(frames):
                async for frame in frames:
                    if not await self._sent(frame):
                        return
        except TimeoutError:
            code = TOO_SLOW
        except Exception:  # who listens comes back by its place
            log.exception("socket of a job failed")
            code = TRY_AGAIN_LATER
        with contextlib.suppress(OSError):
            await self.close(code=code)

    async def _sent(self, frame: dict[str, Any]) -> bool:
        """Send a frame; tell whether somebody listens still, which the server says by `OSError`."""
        try:
            await asyncio.wait_for(self.send_json(frame), DRAIN_SECONDS)
        except TimeoutError:
            raise
        except OSError:
            return False
        return True


class LogConsumer(JobSocket):
    """Sends a log from an offset on: chunks, gaps, and at last `end`."""

    def frames(self, query: Mapping[str, str]) -> AsyncGenerator[dict[str, Any], None]:
        """Return the frames of the log."""
        wanted = filters.piece(query)
        return self._frames(wanted.stream, wanted.offset)

    async def _frames(self, stream: str, offset: int) -> AsyncGenerator[dict[str, Any], None]:
        job = self.scope["url_route"]["kwargs"]["job"]
        async with contextlib.aclosing(follow(job, stream=stream, offset=offset)) as parts:
            async for part in parts:
                offset = part.next_offset
                for frame in frames_of(part):
                    yield frame
        yield {"type": "end", "next_offset": max(offset, 0)}


class MetricsConsumer(JobSocket):
    """Sends samples: those after `since`, or else the newest, then each as it comes."""

    def frames(self, query: Mapping[str, str]) -> AsyncGenerator[dict[str, Any], None]:
        """Return the frames of the samples."""
        return self._frames(instant(query, "since"))

    async def _frames(self, since: datetime | None) -> AsyncGenerator[dict[str, Any], None]:
        job = self.scope["url_route"]["kwargs"]["job"]
        after = since.timestamp() if since else None
        async with contextlib.aclosing(live.follow(job, since=after)) as samples:
            async for sample in samples:
                yield metrics.frame(self.job, sample)
        yield {"type": "end"}


def frames_of(part: Part) -> "list[dict[str, Any]]":
    """Return a part as frames of at most 64 KiB."""
    if part.gap:
        return [
            {
                "type": "gap",
                "offset": part.offset,
                "next_offset": part.next_offset,
                "line": part.line,
                "reason": part.gap,
                "text": part.data.decode("utf-8", "replace"),
            }
        ]
    frames = []
    offset, line = part.offset, part.line
    for data in cut(part.data, most=FRAME_BYTES):
        frames.append(
            {
                "type": "chunk",
                "offset": offset,
                "next_offset": offset + len(data),
                "line": line,
                "text": data.decode("utf-8", "replace"),
                "stream": part.stream,
                "rank": part.rank,
                "attempt": part.attempt,
                "at": part.at,
            }
        )
        offset, line = offset + len(data), line + data.count(b"\n")
    return frames
