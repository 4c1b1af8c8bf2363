"""The feed socket: what changed in the teams that a person may see.

A message carries ids and numbers; the page fetches what it shows. Who may listen is asked again at
least once a minute, so that a revoked token, a removed member or a sign-out ends the socket.
"""

import asyncio
import contextlib
import logging
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user
from django.db import DatabaseError
from redis.exceptions import RedisError

from portal.teams import selectors
from portal.teams.roles import Actor, Scope
from portal.teams.services import tokens

log = logging.getLogger(__name__)
CHECK_SECONDS = 30
NOT_SIGNED_IN = 4401
ENDED = 4403
TRY_AGAIN_LATER = 1013
CANNOT_LOOK = (DatabaseError, RedisError, OSError)
MOST_TEAMS = 200


class FeedConsumer(AsyncJsonWebsocketConsumer):
    """`/ws/v1/feed`: `{"type": "changed", "kind": …, "team": slug}`."""

    actor: Actor
    groups_of: dict[str, str]
    watch: "asyncio.Task[None] | None" = None

    async def connect(self) -> None:
        """Accept a signed-in person or a bearer token with the scope `read`."""
        protocol = "bearer" if is_bearer(self.scope) else None
        try:
            actor = await actor_of_scope(self.scope)
            if actor is not None:
                self.actor, self.groups_of = actor, {}
                await self._join()
        except CANNOT_LOOK as error:
            await self.accept(subprotocol=protocol)
            await self._come_back_later(error)
            return
        await self.accept(subprotocol=protocol)
        if actor is None:
            await self.close(code=NOT_SIGNED_IN)
            return
        self.watch = asyncio.create_task(self._keep_checking())

    async def disconnect(self, code: int) -> None:
        """Leave every group."""
        if self.watch is not None:
            self.watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.watch
        for group in getattr(self, "groups_of", {}):
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any
    ) -> None:
        """Ignore what browsers say: the feed only speaks."""

    async def hint(self, message: dict[str, Any]) -> None:
        """Pass a hint of the channel layer on."""
        if message.get("kind") in {"signed_out", "token_revoked", "member"}:
            await self._check()
            return
        facts = {key: value for key, value in message.items() if key != "type"}
        await self.send_json({"type": "changed", **facts})

    async def _join(self) -> None:
        wanted = await database_sync_to_async(_groups_of)(self.actor)
        for group in self.groups_of.keys() - wanted.keys():
            await self.channel_layer.group_discard(group, self.channel_name)
        for group in wanted.keys() - self.groups_of.keys():
            await self.channel_layer.group_add(group, self.channel_name)
        self.groups_of = wanted

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self._check()

    async def _check(self) -> None:
        """Ask again whether the person may listen, and to what; who cannot be asked is closed."""
        try:
            actor = await database_sync_to_async(_still)(self.scope, self.actor)
            if actor is not None:
                self.actor = actor
                await self._join()
        except CANNOT_LOOK as error:
            await self._come_back_later(error)
            return
        if actor is None:
            await self.close(code=ENDED)

    async def _come_back_later(self, error: Exception) -> None:
        log.warning("feed closed, cannot ask who listens", extra={"error": str(error)})
        await self.close(code=TRY_AGAIN_LATER)


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


def _groups_of(actor: Actor) -> dict[str, str]:
    """Return the groups to listen to → the team's slug, or nothing for the person's own group."""
    teams = selectors.teams_for(actor).values_list("pk", "slug")[:MOST_TEAMS]
    return {f"user.{actor.user_id}": "", **{f"team.{pk}": slug for pk, slug in teams}}
