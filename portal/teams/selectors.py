"""Questions about people and teams; each that a person asks starts from the actor."""

from collections.abc import Iterable
from typing import Any

from allauth.usersessions.models import UserSession
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from portal.core import clock
from portal.core.errors import NotAllowed, NotFound
from portal.teams.models import (
    ApiToken,
    AuditEvent,
    AuditSeal,
    Event,
    Invitation,
    Limit,
    Membership,
    Secret,
    Team,
    User,
)
from portal.teams.roles import Actor, Permission, Role, Scope, SiteRole


def actor_of(user: User, *, token: ApiToken | None = None) -> Actor:
    """Return the person as the portal sees this request; one query."""
    rows = Membership.objects.filter(user=user).values_list("team_id", "team__slug", "role")
    memberships = list(rows)
    return Actor(
        user_id=user.pk,
        email=user.email,
        name=user.name,
        site_role=SiteRole(user.site_role),
        roles={team_id: Role(role) for team_id, _slug, role in memberships},
        slugs={team_id: slug for team_id, slug, _role in memberships},
        scopes=frozenset(Scope(s) for s in token.scopes) if token else None,
        token_id=token.pk if token else None,
        token_prefix=token.prefix if token else "",
        bound_team_id=token.team_id if token else None,
    )


def live_token(digest: str) -> ApiToken | None:
    """Return the usable token with that SHA-256 and its active owner, or `None`; one query."""
    return (
        ApiToken.objects.select_related("user")
        .filter(digest=digest, revoked_at=None, user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=clock.now()))
        .first()
    )


def may_still_listen(token_id: str) -> Actor | None:
    """Return the actor as of now of a token, or `None` when person or token has ended meanwhile."""
    row = ApiToken.objects.filter(pk=token_id).first()
    token = live_token(row.digest) if row else None
    return actor_of(token.user, token=token) if token else None


def teams_for(actor: Actor) -> QuerySet[Team]:
    """Return the teams that the actor may see."""
    if not actor.has_scope(Scope.READ):
        return Team.objects.none()
    if actor.is_site_wide:
        return Team.objects.all()
    ids = set(actor.roles)
    if actor.bound_team_id is not None:
        ids &= {actor.bound_team_id}
        if actor.site_role is not SiteRole.NONE:
            ids = {actor.bound_team_id}
    return Team.objects.filter(pk__in=ids)


def team_for(actor: Actor, slug: str) -> Team:
    """Return a team by its slug; raise `NotFound` when it is not the actor's to see."""
    team = teams_for(actor).filter(slug=slug).first()
    if team is None:
        raise _no_team()
    return team


def role_in(actor: Actor, team: Team) -> str:
    """Return the word for what the actor is in the team: a role of it, or of the site."""
    role = actor.roles.get(team.pk)
    return str(role or actor.site_role)


def members_for(actor: Actor, team: Team) -> QuerySet[Membership]:
    """Return the team's members with their people, by e-mail."""
    see(actor, team)
    return team.memberships.select_related("user").order_by("user__email")


def invitations_for(actor: Actor, team: Team) -> QuerySet[Invitation]:
    """Return the team's open invitations; only who may edit members sees them."""
    see(actor, team)
    if not actor.can(Permission.MEMBERS_EDIT, team_id=team.pk):
        return Invitation.objects.none()
    return (
        team.invitations.select_related("invited_by")
        .filter(accepted_at=None, withdrawn_at=None, expires_at__gt=clock.now())
        .order_by("-pk")
    )


def secrets_for(actor: Actor, team: Team) -> QuerySet[Secret]:
    """Return the team's secrets, without their values, by name."""
    see(actor, team)
    return team.secrets.select_related("created_by").defer("ciphertext").order_by("name")


def limit_for(actor: Actor, team: Team) -> Limit:
    """Return what the team may use."""
    see(actor, team)
    return Limit.objects.get(team=team)


def events_for(actor: Actor, team: Team) -> QuerySet[Event]:
    """Return the team's feed, newest first."""
    see(actor, team)
    return team.events.select_related("actor").order_by("-pk")


def tokens_for(actor: Actor) -> QuerySet[ApiToken]:
    """Return the actor's own tokens that are not revoked, newest first."""
    mine = ApiToken.objects.select_related("team").filter(user_id=actor.user_id, revoked_at=None)
    if not actor.has_scope(Scope.READ):
        return mine.none()
    if actor.bound_team_id is not None:
        mine = mine.filter(team_id=actor.bound_team_id)
    return mine.order_by("-pk")


def team_tokens_for(actor: Actor, team: Team) -> QuerySet[ApiToken]:
    """Return the live tokens that are bound to the team; managers see those of everybody."""
    see(actor, team)
    tokens = ApiToken.objects.select_related("user").filter(team=team, revoked_at=None)
    may_see_all = actor.can(Permission.MEMBERS_EDIT, team_id=team.pk) or actor.is_site_wide
    return (tokens if may_see_all else tokens.filter(user_id=actor.user_id)).order_by("-pk")


def users_for(actor: Actor) -> QuerySet[User]:
    """Return all people with their number of teams; admins and auditors only."""
    _see_site(actor)
    teams = Membership.objects.filter(user=OuterRef("pk"))
    return User.objects.annotate(team_count=_number_of(teams)).order_by("-pk")


def audit_for(actor: Actor) -> QuerySet[AuditEvent]:
    """Return the audit log, newest first; admins and auditors only."""
    _see_site(actor)
    return AuditEvent.objects.order_by("-pk")


def find_users(actor: Actor, text: str) -> QuerySet[User]:
    """Return people whom the actor may know, by a part of name or e-mail.

    `team_slug` of each is a team in which the actor sees the person, if there is one.
    """
    seen = Membership.objects.filter(user=OuterRef("pk"), team__in=teams_for(actor))
    people = User.objects.filter(Q(name__icontains=text) | Q(email__icontains=text))
    if not actor.is_site_wide:
        people = people.filter(Exists(seen))
    team = Subquery(seen.order_by("team__name").values("team__slug")[:1])
    return people.annotate(team_slug=team).order_by("email")


def counts_of(team: Team) -> dict[str, int]:
    """Return how many people, secrets and live tokens the team has; one query."""
    people = Membership.objects.filter(team=OuterRef("pk"))
    tokens = ApiToken.objects.filter(team=OuterRef("pk"), revoked_at=None)
    counts = Team.objects.values(
        people=_number_of(people),
        secret_count=_number_of(Secret.objects.filter(team=OuterRef("pk"))),
        tokens=_number_of(tokens),
    )
    row: Any = counts.get(pk=team.pk)
    return dict(row)


def _number_of(rows: QuerySet[Any]) -> Coalesce:
    """Count rows in a subquery of their own; joins of several counts would multiply."""
    numbers = rows.order_by().annotate(all=Value(1)).values("all").annotate(n=Count("pk"))
    return Coalesce(Subquery(numbers.values("n")), 0)


def secret_for(actor: Actor, team: Team, name: str) -> Secret:
    """Return a secret without its value; raise `NotFound`."""
    secret = secrets_for(actor, team).filter(name=name).first()
    if secret is None:
        raise NotFound("not_found", "The team has no secret of that name.")
    return secret


def sessions_of(actor: Actor) -> QuerySet[UserSession]:
    """Return the actor's own browser sessions, the latest used first."""
    sessions: QuerySet[UserSession] = UserSession.objects.filter(user_id=actor.user_id)
    return sessions.order_by("-last_seen_at")[:100]


def has_account(email: str) -> bool:
    """Tell whether an address has an account; only holders of a link to it may be told."""
    return User.objects.filter(email=email).exists()


def all_teams_for(actor: Actor, text: str = "") -> QuerySet[Team]:
    """Return all teams with their number of people, by name; admins and auditors only."""
    _see_site(actor)
    teams = Team.objects.filter(Q(name__icontains=text) | Q(slug__icontains=text))
    return teams.annotate(people=Count("memberships")).order_by("name", "pk")


def sealed_of(actor: Actor) -> dict[str, Any]:
    """Return how many audit records are sealed, and the head of the chain."""
    _see_site(actor)
    last = AuditSeal.objects.order_by("-position").first()
    return {"count": last.position if last else 0, "head": last.hash if last else ""}


def recent_events_for(actor: Actor, *, most: int = 12) -> list[Event]:
    """Return the newest events of the teams that the actor may see."""
    events = Event.objects.select_related("team").filter(team__in=teams_for(actor))
    return list(events.order_by("-pk")[:most])


def find_teams(actor: Actor, text: str) -> QuerySet[Team]:
    """Return the actor's teams by a part of name or slug."""
    return (
        teams_for(actor).filter(Q(name__icontains=text) | Q(slug__icontains=text)).order_by("name")
    )


def see(actor: Actor, team: Team) -> None:
    """Raise `NotFound` unless the actor may see the team."""
    if not actor.can(Permission.TEAM_VIEW, team_id=team.pk):
        raise _no_team()


def _no_team() -> NotFound:
    return NotFound("not_found", "There is no such team, or it is not yours to see.")


def _see_site(actor: Actor) -> None:
    if not actor.can(Permission.SITE_VIEW):
        raise NotAllowed("not_allowed", "Only a site admin or auditor may see this.")


def missing_secrets(team: Team, names: Iterable[str]) -> list[str]:
    """Return which of these secrets the team does not have, by name."""
    wanted = set(names)
    if not wanted:
        return []
    there = Secret.objects.filter(team=team, name__in=wanted).values_list("name", flat=True)
    return sorted(wanted - set(there))
