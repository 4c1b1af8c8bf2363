"""Making and changing teams."""

from zoneinfo import available_timezones

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from portal.core.errors import Conflict, Invalid
from portal.teams.models import Limit, Membership, Team, slug_validator
from portal.teams.roles import Actor, Permission, Role
from portal.teams.services.access import require
from portal.teams.services.events import record_event
from portal.teams.services.names import check_name


def check_slug(slug: str) -> str:
    """Return the slug; raise `Invalid` when it has another shape."""
    try:
        slug_validator(slug)
    except ValidationError as error:
        raise Invalid.at("slug", error.messages[0]) from error
    return slug


def check_time_zone(name: str) -> str:
    """Return the zone's name; raise `Invalid` when the time zone database does not know it."""
    if name not in available_timezones():
        message = f"“{name[:64]}” is no time zone. Use a name such as Europe/Berlin or UTC."
        raise Invalid.at("time_zone", message)
    return name


@transaction.atomic
def create_team(
    actor: Actor, *, slug: str, name: str, time_zone: str = "UTC", join: bool = False
) -> Team:
    """Create a team with no limits; with `join` the actor becomes its first manager.

    Raises `NotAllowed`, `Invalid`, or `Conflict` when the slug is taken in any case of letters.
    """
    require(actor, Permission.TEAM_CREATE)
    team = Team(slug=check_slug(slug), name=check_name(name), time_zone=check_time_zone(time_zone))
    try:
        with transaction.atomic():
            team.save(force_insert=True)
    except IntegrityError as error:
        message = f"The name {slug} in addresses is taken. Choose another."
        raise Conflict.at("slug", message, code="slug_taken") from error
    Limit.objects.create(team=team)
    if join:
        Membership.objects.create(team=team, user_id=actor.user_id, role=Role.MANAGER)
    record_event(
        "team.created",
        subject=f"team:{team.pk}",
        actor=actor,
        team=team,
        facts={"slug": slug, "name": team.name},
        audit=True,
    )
    return team


@transaction.atomic
def update_team(
    actor: Actor, team: Team, *, name: str | None = None, time_zone: str | None = None
) -> Team:
    """Change a team's name or time zone; `None` leaves it as it is."""
    require(actor, Permission.TEAM_EDIT, team=team)
    wanted = {
        "name": check_name(name) if name is not None else team.name,
        "time_zone": check_time_zone(time_zone) if time_zone is not None else team.time_zone,
    }
    changed = {key: value for key, value in wanted.items() if value != getattr(team, key)}
    if changed:
        Team.objects.filter(pk=team.pk).update(**changed)
        record_event(
            "team.changed", subject=f"team:{team.pk}", actor=actor, team=team, facts=changed
        )
        team.refresh_from_db()
    return team
