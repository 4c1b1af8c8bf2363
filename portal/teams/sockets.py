"""Sockets that a person opens: who it is, asked again every 30 s and whenever a right may end."""

import asyncio
import logging
from importlib import import_module
from typing import Any, Final

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user
from django.db import DatabaseError
from redis.exceptions import RedisError

from portal.core.errors import NotFound
from portal.teams import selectors
from portal.teams.roles import Actor, Scope
from portal.teams.services import tokens

log = logging.getLogger(__name__)
CHECK_SECONDS: Final = 30
NOT_SIGNED_IN: Final = 4401
ENDED: Final = 4403
TRY_AGAIN_LATER: Final = 1013
CANNOT_LOOK: Final = (DatabaseError, RedisError, OSError)
RIGHTS: Final = frozenset({"signed_out", "token_revoked", "member"})


class PersonSocket(AsyncJsonWebsocketConsumer):
    """A socket of a signed-in person or of a bearer token with the scope `read`.

    Close codes: 4401 nobody is signed in, 4403 the right has ended or was never there, 1013 the
    stores cannot be asked now.
    """

    actor: Actor
    watch: "asyncio.Task[None] | None" = None

    async def begin(self) -> None:
        """Start to speak; called once, after the handshake."""

    async def check(self) -> None:
        """Look what the actor may hear now. Raises `NotFound` when it is nothing any more."""

    async def end(self) -> None:
        """Stop speaking."""

    async def connect(self) -> None:
        """Accept, then say by the close code who may not listen: browsers see no HTTP status."""
        protocol = "bearer" if is_bearer(self.scope) else None
        code = None
        try:
            actor = await actor_of_scope(self.scope)
            if actor is None:
                code = NOT_SIGNED_IN
            else:
                self.actor = actor
                await self.channel_layer.group_add(f"user.{actor.user_id}", self.channel_name)
                await self.check()
        except NotFound:
            code = ENDED
        except CANNOT_LOOK as error:
            log.warning("socket closed, cannot ask who listens", extra={"error": str(error)})
            code = TRY_AGAIN_LATER
        await self.accept(subprotocol=protocol)
        if code is not None:
            await self.close(code=code)
            return
        self.watch = asyncio.create_task(self._keep_checking())
        await self.begin()

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - Channels'
        """Leave everything."""
        if self.watch is not None:
            self.watch.cancel()
            await asyncio.wait([self.watch])  # raises nothing, whatever has ended the watch
        await self.end()
        if hasattr(self, "actor"):
            group = f"user.{self.actor.user_id}"
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any
    ) -> None:
        """Ignore what browsers say: these sockets only speak."""

    async def hint(self, message: dict[str, Any]) -> None:
        """Ask again who listens when a hint says that a right may have ended."""
        if message.get("kind") in RIGHTS:
            await self.check_again()

    async def check_again(self) -> None:
        """Ask again whether the person may listen; who may not, or cannot be asked, is closed."""
        code = None
        try:
            actor = await database_sync_to_async(_still)(self.scope, self.actor)
            if actor is None:
                code = ENDED
            else:
                self.actor = actor
                await self.check()
        except NotFound:
            code = ENDED
        except CANNOT_LOOK as error:
            log.warning("socket closed, cannot ask who listens", extra={"error": str(error)})
            code = TRY_AGAIN_LATER
        if code is not None:
            await self.close(code=code)

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check_again()


def is_bearer(scope: Any) -> bool:
    """Tell whether a socket is opened by a token; it then never falls back to the session."""
    return (scope.get("subprotocols") or [])[:1] == ["bearer"]


async def actor_of_scope(scope: Any) -> Actor | None:
    """Return who opens a socket.

    `Sec-WebSocket-Protocol: bearer, slw_…`, or the browser's session.
    """
    if is_bearer(scope):
        text = "".join(scope["subprotocols"][1:2])
        return await database_sync_to_async(_by_token)(text)
    return await database_sync_to_async(_by_session)(scope)


def _by_token(text: str) -> Actor | None:
    token = selectors.live_token(tokens.digest_of(text))
    if token is None:
        return None
    tokens.note_use(token)
    actor = selectors.actor_of(token.user, token=token)
    return actor if actor.has_scope(Scope.READ) else None


def _by_session(scope: Any) -> Actor | None:
    """Read the session anew: a sign-out or another password ends it meanwhile."""
    opened = scope.get("session")
    if opened is None or opened.session_key is None:
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(opened.session_key)
    if SESSION_KEY not in session:
        return None
    request: Any = type("SessionOnly", (), {"session": session})()
    user = get_user(request)
    return selectors.actor_of(user) if user.is_authenticated and user.is_active else None


def _still(scope: Any, actor: Actor) -> Actor | None:
    if actor.token_id is None:
        return _by_session(scope)
    return selectors.may_still_listen(actor.token_id)
