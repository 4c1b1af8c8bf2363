"""The door of node agents, `/api/agent/v1`: posts of lines and figures, secrets, the agent itself.

An ASGI application of its own before Django's, since every running job knocks here each second.
Posts that arrive while others are being written are written together, in one transaction: the
slower the database, the larger the bundles. The protocol is in docs/agent.md.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from django.db import DataError, Error, connection

from clusters import selectors as clusters
from jobs.logs import posts, store
from jobs.logs.posts import Post
from jobs.logs.store import Answer
from jobs.services import attempts
from portal.core import disk
from portal.core.errors import PROBLEM, SlipwayError, problem

log = logging.getLogger(__name__)
T = TypeVar("T")
PREFIX: Final = "/api/agent/v1/"
MOST_BODY: Final = posts.MOST_BYTES + (64 << 10)
MOST_BUNDLE: Final = 200
POSTS_PER_SECOND: Final = 100
FOLLOWED_MS, QUIET_MS, LONGEST_MS = 50, 1000, 5000
WINDOW_SECONDS: Final = 5.0
SAMPLE_SECONDS: Final = 5
MOST_NONCE: Final = 64


class Pace:
    """How long agents should gather: longer, the more posts there were in the last seconds."""

    def __init__(self) -> None:
        self.flush_ms = QUIET_MS
        self._since = time.monotonic()
        self._count = 0

    def note(self, count: int) -> None:
        """Count posts; every few seconds, choose the pace that brings about 100 a second."""
        self._count += count
        passed = time.monotonic() - self._since
        if passed >= WINDOW_SECONDS:
            agents = self._count / passed * self.flush_ms / 1000
            wanted = int(agents / POSTS_PER_SECOND * 1000)
            self.flush_ms = min(LONGEST_MS, max(QUIET_MS, wanted))
            self._since, self._count = time.monotonic(), 0


class Writer:
    """Bundles posts of this process, and hands them to the store in a thread of its own."""

    def __init__(self) -> None:
        self.pace = Pace()
        self._waiting: list[tuple[Post, asyncio.Future[Answer]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ingest")

    async def write(self, post: Post) -> Answer:
        """Return the store's answer to the post. Raises `django.db.Error`."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((post, answer))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._drain())
        return await answer

    async def call(self, function: Callable[[], T]) -> T:
        """Run something that asks the database in the same thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _closing, function)

    async def _drain(self) -> None:
        while self._waiting:
            bundle, self._waiting = self._waiting[:MOST_BUNDLE], self._waiting[MOST_BUNDLE:]
            self.pace.note(len(bundle))
            try:
                answers = await self.call(partial(_take, [post for post, _answer in bundle]))
            except Exception as error:
                for _post, answer in bundle:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_post, answer), found in zip(bundle, answers, strict=True):
                if not answer.done():  # who asked may have gone
                    answer.set_result(found)


def _take(bundle: Sequence[Post]) -> list[Answer]:
    """Write a bundle; when one post in it cannot be stored, the others are."""
    try:
        return store.take(bundle)
    except DataError:
        if len(bundle) == 1:
            log.exception("post cannot be stored")
            return [Answer(status=store.UNFIT)]
        return [answer for post in bundle for answer in _take([post])]


def _closing(function: Callable[[], T]) -> T:
    """Run, and give the connection back to the pool, which checks it before it lends it again."""
    try:
        return function()
    finally:
        connection.close()


writer = Writer()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer an agent; every failure is a problem document, never a traceback."""
    try:
        status, answer = await _dispatch(scope, receive)
    except SlipwayError as error:
        status, answer = error.status, _problem(error.status, error)
    except Error as error:
        log.warning("ingest cannot write", extra={"error": str(error)})
        away = SlipwayError("maintenance", "The database cannot be reached. Keep it and come back.")
        status, answer = 503, _problem(503, away)
    kind = PROBLEM if status >= 400 else "application/json"
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    if isinstance(answer, bytes):
        kind = "text/x-python; charset=utf-8"
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if status == 503:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _dispatch(scope: Any, receive: Any) -> tuple[int, Any]:
    method, name = scope["method"], scope["path"].removeprefix(PREFIX)
    if (method, name) in (("GET", "agent.py"), ("HEAD", "agent.py")):
        return 200, clusters.agent_source()
    if name not in ("posts", "secrets"):
        return _not_here(404, "There is nothing here.")
    if method != "POST":
        return _not_here(405, "Agents POST here.")
    token_hash = _token_hash(scope)
    if token_hash is None:
        return _not_here(401, "Give the attempt's token as a bearer token.")
    body = await _body(receive)
    if body is None:
        return _not_here(413, f"A post has at most {posts.MOST_BYTES:,} bytes.")
    return await (_posts if name == "posts" else _secrets)(token_hash, body)


async def _posts(token_hash: str, body: bytes) -> tuple[int, Any]:
    post = posts.parse(body, token_hash=token_hash)
    if disk.is_low() and (post.chunks or post.samples):
        return _not_here(503, "The portal's disk is nearly full. Keep the lines and come back.")
    answer = await writer.write(post)
    if answer.status == store.ENDED:
        return _not_here(401, "This token is not known, or not any more.")
    if answer.status == store.UNFIT:
        return _not_here(400, "This is not of a rank or restart of the job, or cannot be stored.")
    if answer.status == store.OVER:
        return _not_here(410, "The job has been over for too long.")
    return 200, {
        "acked": answer.acked,
        "flush_after_ms": FOLLOWED_MS if answer.is_followed else writer.pace.flush_ms,
        "stop": None,
        "sample_every_seconds": SAMPLE_SECONDS,
    }


async def _secrets(token_hash: str, body: bytes) -> tuple[int, Any]:
    try:
        nonce = json.loads(body)["nonce"]
    except (ValueError, TypeError, KeyError, RecursionError):
        nonce = None
    if not (isinstance(nonce, str) and 8 <= len(nonce) <= MOST_NONCE and nonce.isalnum()):
        return _not_here(400, f"Give a nonce of 8 to {MOST_NONCE} letters and digits.")
    take = partial(attempts.take_secrets, token_hash, nonce=nonce)
    return 200, {"secrets": await writer.call(take)}


async def _body(receive: Any) -> bytes | None:
    """Read the body; `None` when it is too large, or its sender has gone."""
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(pieces)


def _token_hash(scope: Any) -> str | None:
    given = dict(scope["headers"]).get(b"authorization", b"")
    kind, _space, token = given.partition(b" ")
    if kind.lower() != b"bearer" or not 20 <= len(token) <= 200:
        return None
    return hashlib.sha256(token.strip()).hexdigest()


def _not_here(status: int, detail: str) -> tuple[int, Any]:
    code = {401: "not_authenticated", 404: "not_found", 410: "over", 413: "too_large"}
    return status, _problem(status, SlipwayError(code.get(status, "malformed"), detail))


def _problem(status: int, error: SlipwayError) -> dict[str, Any]:
    return problem(
        status=status, code=error.code, detail=error.message, request_id="", errors=error.errors
    )
