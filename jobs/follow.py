"""Following logs: one reader a log and stream in this process, and sockets as cursors on it.

A reader is woken by hints and by a poll every 2 s, so a lost hint costs time and no line. It keeps
the newest 4 MiB; a socket that is further behind reads the store by itself until it is near.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import DatabaseError
from redis.exceptions import RedisError

from jobs import selectors
from jobs.logs import read
from jobs.logs.read import Part
from jobs.services import attempts

log = logging.getLogger(__name__)
WINDOW_BYTES: Final = 4 << 20
STEP_BYTES: Final = 256 << 10
POLL_SECONDS: Final = 2.0
NOTE_SECONDS: Final = 5.0


class Polled:
    """Reads on when it is knocked at, and every 2 s, for all sockets of this process."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.is_complete = False
        self.sockets = 0
        self.knock = asyncio.Event()
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to read on."""
        await self._begin()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            self.knock.clear()
            try:
                await self._read_on()
            except (DatabaseError, OSError) as error:
                log.warning("follower cannot read", extra={"error": str(error)})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self.knock.wait()

    async def _begin(self) -> None:
        """Look where to begin."""

    async def _read_on(self) -> None:
        """Fetch what is new, and tell who waits."""


class Reader(Polled):
    """Reads on at the end of one log as one stream."""

    def __init__(self, job_id: str, stream: str) -> None:
        super().__init__(job_id)
        self.stream = stream
        self.start = self.end = 0
        self._window: deque[Part] = deque()
        self._bytes = 0

    def parts_from(self, offset: int) -> Iterator[Part]:
        """Yield what the window holds from an offset on; the offset must be within it."""
        for part in list(self._window):
            if part.next_offset > offset:
                yield part.after(offset)

    async def wait(self, offset: int) -> None:
        """Wait until there is more than up to the offset, or nothing will come any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.end > offset or self.is_complete)

    async def _begin(self) -> None:
        head = await database_sync_to_async(read.head)(self.job_id, stream=self.stream)
        self.start = self.end = head.size

    async def _read_on(self) -> None:
        """Fetch what is new; whether it is all is asked *before*, so that no line comes after."""
        if self.is_complete:
            return
        complete = await database_sync_to_async(selectors.is_log_complete)(self.job_id)
        while True:
            window = await database_sync_to_async(_read)(self.job_id, self.stream, self.end)
            if not window.parts:
                break
            async with self._changed:
                self._take(window.parts)
                self._changed.notify_all()
        if complete:
            async with self._changed:
                self.is_complete = True
                self._changed.notify_all()

    def _take(self, parts: Any) -> None:
        for part in parts:
            self._window.append(part)
            self._bytes += len(part.data)
            self.end = part.next_offset
        while self._bytes > WINDOW_BYTES and len(self._window) > 1:
            gone = self._window.popleft()
            self._bytes -= len(gone.data)
            self.start = gone.next_offset


R = TypeVar("R", bound=Polled)


class Hub(Generic[R]):
    """The readers of this process's event loop, and the one channel on which hints come.

    A reader is made of a job's id and a stream; hints come to the group `<kind>.<job>`.
    """

    def __init__(self, kind: str, make: Callable[[str, str], R]) -> None:
        self.readers: dict[tuple[str, str], R] = {}
        self._kind, self._make = kind, make
        self._channel = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def reader(self, job_id: str, stream: str = "") -> AsyncIterator[R]:
        """Give the reader while somebody follows."""
        async with self._lock:
            found = self.readers.get((job_id, stream)) or await self._open(job_id, stream)
            found.sockets += 1
        try:
            yield found
        finally:
            found.sockets -= 1
            async with self._lock:
                if not found.sockets and self.readers.get((job_id, stream)) is found:
                    del self.readers[job_id, stream]
                    await found.close()
                    await self._unsubscribe(job_id)

    async def _open(self, job_id: str, stream: str) -> R:
        """Make a reader; it is there for others only once it reads."""
        await self._listen()
        await database_sync_to_async(attempts.note_followed)([job_id])
        await self._subscribe(job_id)
        found = self._make(job_id, stream)
        await found.open()
        self.readers[job_id, stream] = found
        return found

    async def _subscribe(self, job_id: str) -> None:
        with contextlib.suppress(RedisError, OSError):
            await _layer().group_add(f"{self._kind}.{job_id}", self._channel)

    async def _unsubscribe(self, job_id: str) -> None:
        if not any(job == job_id for job, _stream in self.readers):
            with contextlib.suppress(RedisError, OSError):
                await _layer().group_discard(f"{self._kind}.{job_id}", self._channel)

    async def _listen(self) -> None:
        if not self._tasks:
            self._channel = await _layer().new_channel()
            self._tasks = [
                asyncio.create_task(self._hear()),
                asyncio.create_task(self._note()),
            ]

    async def _hear(self) -> None:
        """Wake the readers of the logs that hints name."""
        while True:
            try:
                message = await _layer().receive(self._channel)
            except (RedisError, OSError) as error:
                log.warning("hints cannot be heard", extra={"error": str(error)})
                await asyncio.sleep(POLL_SECONDS)
                continue
            for (job_id, _stream), reader in self.readers.items():
                if job_id == message.get("job"):
                    reader.knock.set()

    async def _note(self) -> None:
        """Tell ingest which logs are followed, so that their agents post at once."""
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            jobs = sorted({job_id for job_id, _stream in self.readers})
            if jobs:
                with contextlib.suppress(DatabaseError):
                    await database_sync_to_async(attempts.note_followed)(jobs)


def _layer() -> Any:
    """Return the channel layer, which settings always name."""
    return get_channel_layer()


_hubs: dict[int, Hub[Reader]] = {}


def hub() -> Hub[Reader]:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    return _hubs.setdefault(id(loop), Hub("log", Reader))


async def follow(job_id: str, *, stream: str, offset: int) -> AsyncGenerator[Part, None]:
    """Yield the log from an offset on, and what comes, until it is complete.

    A negative offset counts from the end. Parts come in order, each byte once.
    """
    if offset < 0:
        head = await database_sync_to_async(read.head)(job_id, stream=stream)
        offset = max(0, head.size + offset)
    async with hub().reader(job_id, stream) as reader:
        while True:
            if offset < reader.start:
                window = await database_sync_to_async(_read)(job_id, stream, offset)
                for part in window.parts:
                    yield part
                offset = max(offset, window.next_offset)
                continue
            if offset < reader.end:
                for part in reader.parts_from(offset):
                    offset = part.next_offset
                    yield part
                continue
            if reader.is_complete:
                return
            await reader.wait(offset)


def _read(job_id: str, stream: str, offset: int) -> Any:
    return read.read(read.head(job_id, stream=stream), offset=offset, limit=STEP_BYTES)
