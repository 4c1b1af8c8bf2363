"""API tokens: 256 random bits, of which only the SHA-256 is kept."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from portal.core import clock, push
from portal.core.errors import FieldError, Invalid, NotAllowed, NotFound
from portal.teams.models import ApiToken, Team
from portal.teams.roles import Actor, Permission, Scope
from portal.teams.services.access import require
from portal.teams.services.events import record_event

PREFIX = "slw_"
SHOWN = 10
USE_EXACT_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """A new token and, this once, its text."""

    row: ApiToken
    text: str


def digest_of(text: str) -> str:
    """Return the SHA-256 by which the text of a token, or of a link, is found."""
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic
def create_token(
    actor: Actor,
    *,
    name: str,
    scopes: Sequence[str],
    team: Team | None = None,
    expires_at: datetime | None = None,
) -> Minted:
    """Make a token for the actor; it can never do more than its owner, nor more than its maker.

    Raises `Invalid`, and `NotAllowed` when the actor itself acts through a narrower token.
    """
    if team is not None:
        require(actor, Permission.TOKENS_BIND, team=team)
    wanted = _checked(name=name, scopes=scopes, expires_at=expires_at)
    if not all(actor.has_scope(scope) for scope in wanted) or not actor.has_scope(Scope.WRITE):
        raise NotAllowed("scope_too_wide", "A token cannot make one that may do more than itself.")
    if actor.bound_team_id is not None and (team is None or team.pk != actor.bound_team_id):
        raise NotAllowed("scope_too_wide", "A token of one team can only make tokens of that team.")
    text = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        user_id=actor.user_id,
        team=team,
        name=name.strip(),
        prefix=text[:SHOWN],
        digest=digest_of(text),
        scopes=sorted(wanted),
        expires_at=expires_at,
    )
    record_event(
        "token.created",
        subject=f"token:{row.pk}",
        actor=actor,
        team=team,
        facts={"name": row.name, "prefix": row.prefix, "scopes": row.scopes},
        audit=True,
    )
    return Minted(row=row, text=text)


@transaction.atomic
def revoke_token(actor: Actor, token: ApiToken) -> None:
    """End an own token, or as a manager one that is bound to the team.

    Its requests fail at once and its sockets close within a minute. Raises `NotFound`.
    """
    may = token.user_id == actor.user_id and actor.has_scope(Scope.WRITE)
    if token.team_id is not None:
        may = may or actor.can(Permission.MEMBERS_EDIT, team_id=token.team_id)
    if not may and not actor.can(Permission.SITE_EDIT):
        raise NotFound("not_found", "There is no such token of yours.")
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=clock.now()):
        return
    record_event(
        "token.revoked",
        subject=f"token:{token.pk}",
        actor=actor,
        team=token.team,
        facts={"name": token.name, "prefix": token.prefix},
        audit=True,
    )
    push.hint(f"user.{token.user_id}", kind="token_revoked")


def note_use(token: ApiToken) -> None:
    """Remember that the token was used, exact to a minute, without a write on every request."""
    now = clock.now()
    last = token.last_used_at
    if last is None or (now - last).total_seconds() >= USE_EXACT_SECONDS:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def _checked(*, name: str, scopes: Sequence[str], expires_at: datetime | None) -> list[Scope]:
    errors: list[FieldError] = []
    if not 1 <= len(name.strip()) <= 100:
        errors.append(FieldError(pointer="/name", message="Give a name of 1 to 100 characters."))
    known = [str(scope) for scope in Scope]
    if not scopes or any(scope not in known for scope in scopes):
        message = f"Choose at least one of {', '.join(known)}."
        errors.append(FieldError(pointer="/scopes", message=message))
    if expires_at is not None and expires_at <= clock.now():
        errors.append(FieldError(pointer="/expires_at", message="Choose an instant in the future."))
    if errors:
        raise Invalid("invalid", "The token was not made: see the fields.", errors=errors)
    return [Scope(scope) for scope in dict.fromkeys(scopes)]
