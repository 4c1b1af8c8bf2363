"""The event log: what changed, who did it, in the transaction of the change itself."""

from collections.abc import Mapping
from typing import Any

from portal.core import push
from portal.teams.models import AuditEvent, Event, Team
from portal.teams.roles import Actor

SYSTEM = "Slipway"


def record_event(
    action: str,
    *,
    subject: str,
    actor: Actor | None = None,
    team: Team | None = None,
    facts: Mapping[str, Any] | None = None,
    audit: bool = False,
) -> None:
    """Write an event of the team's feed, and with `audit` also a record of the audit log.

    `actor=None` is the portal itself. Facts are plain JSON and never hold a secret. Expects the
    caller's transaction and hints the team's feed after its commit.
    """
    label = (actor.name or actor.email) if actor else SYSTEM
    Event.objects.create(
        team=team,
        actor_id=actor.user_id if actor else None,
        actor_label=label[:254],
        action=action,
        subject=subject,
        facts=dict(facts or {}),
    )
    if audit:
        AuditEvent.objects.create(
            actor_id=actor.user_id if actor else "",
            actor_label=(actor.email if actor else SYSTEM),
            via=actor.via if actor else "system",
            action=action,
            team_slug=team.slug if team else "",
            subject=subject,
            facts=dict(facts or {}),
        )
    if team is not None:
        push.hint(f"team.{team.pk}", kind="event", team=team.slug)
