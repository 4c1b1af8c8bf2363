"""Following samples: one reader a job in this process; each socket knows what it has had.

Ranks post on their own, so each has a cursor of its own: the instant of its newest sample.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

from channels.db import database_sync_to_async

from clusters.samples import read
from clusters.samples.store import Sample
from jobs import selectors
from jobs.follow import Hub, Polled
from jobs.values import subject_of

WINDOW_SECONDS: Final = 60


class Samples(Polled):
    """Reads on at the end of one job's samples."""

    def __init__(self, job_id: str, _stream: str = "") -> None:
        super().__init__(job_id)
        self._window: deque[tuple[float, Sample]] = deque()
        self.version = 0
        self._newest: dict[str, float] = {}

    @property
    def window(self) -> list[Sample]:
        """What has come in the last minute, in the order in which it came."""
        return [sample for _came, sample in self._window]

    async def wait(self, version: int) -> None:
        """Wait until something has come since that version."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.version > version)

    async def _begin(self) -> None:
        self._take(await database_sync_to_async(read.newest)(subject_of(self.job_id)))

    async def _read_on(self) -> None:
        """Fetch what is new; whether it is all is asked before, so that nothing comes after."""
        if self.is_complete:
            return
        complete = await database_sync_to_async(selectors.is_log_complete)(self.job_id)
        prefix = subject_of(self.job_id)
        fresh = await database_sync_to_async(read.after)(prefix, 0, known=dict(self._newest))
        if fresh or complete:
            async with self._changed:
                self._take(fresh)
                self.version += 1
                self.is_complete = complete
                self._changed.notify_all()

    def _take(self, samples: list[Sample]) -> None:
        now = time.monotonic()
        for sample in samples:
            self._window.append((now, sample))
            self._newest[sample.subject] = sample.at
        while self._window and self._window[0][0] < now - WINDOW_SECONDS:
            self._window.popleft()


_hubs: dict[int, Hub[Samples]] = {}


def hub() -> Hub[Samples]:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    return _hubs.setdefault(id(loop), Hub("sample", Samples))


async def follow(job_id: str, *, since: float | None) -> AsyncGenerator[Sample, None]:
    """Yield each rank's samples after an instant, and what comes, until nothing will.

    Without an instant the newest sample of each rank comes first. None comes twice.
    """
    seen: dict[str, float] = {}
    async with hub().reader(job_id) as reader:
        version = reader.version
        if since is None:
            known = await database_sync_to_async(read.newest)(subject_of(job_id))
        else:
            known = await database_sync_to_async(read.after)(subject_of(job_id), since)
        while True:
            for sample in known:
                if sample.at > seen.get(sample.subject, since or 0):
                    seen[sample.subject] = sample.at
                    yield sample
            if reader.is_complete and version == reader.version:
                return
            if version == reader.version:
                await reader.wait(version)
            version, known = reader.version, reader.window
