"""Members of teams: adding, inviting by link, changing roles, leaving."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from portal.core import clock, push
from portal.core.errors import Conflict, Invalid, NotFound
from portal.teams.models import Invitation, Membership, Team, User
from portal.teams.roles import Actor, Permission, Role
from portal.teams.services import users
from portal.teams.services.access import require
from portal.teams.services.events import record_event
from portal.teams.services.limits import lock_quota
from portal.teams.services.tokens import digest_of

INVITATION_DAYS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """An invitation and, this once, the secret of its link."""

    invitation: Invitation
    token: str


def check_email(email: str) -> str:
    """Return the address in lower case; raise `Invalid` when it is none or too long."""
    email = email.strip().lower()
    message = ""
    if len(email) > 254:
        message = f"An e-mail address has at most 254 characters; this one has {len(email)}."
    else:
        try:
            validate_email(email)
        except ValidationError:
            message = "Give an e-mail address such as ada@example.org, in plain letters."
    if message:
        raise Invalid.at("email", message)
    return email


def check_role(role: str) -> Role:
    """Return the role; raise `Invalid` when it is none."""
    try:
        return Role(role)
    except ValueError as error:
        raise Invalid.at("role", "Choose viewer, member or manager.") from error


@transaction.atomic
def add_member(actor: Actor, team: Team, *, email: str, role: str) -> Membership | Invited:
    """Make a known, active person a member at once, or invite an unknown one by a link.

    A second invitation of the same person replaces the first, whose link then ends. Raises
    `Conflict` when the person is a member already.
    """
    require(actor, Permission.MEMBERS_EDIT, team=team)
    email, role = check_email(email), check_role(role)
    user = User.objects.filter(email=email).first()
    if user is None:
        return _invite(actor, team, email=email, role=role)
    if not user.is_active:
        raise Conflict(
            "deactivated", f"{email} is deactivated. An admin can reactivate the account."
        )
    try:
        with transaction.atomic():
            membership = Membership.objects.create(team=team, user=user, role=role)
    except IntegrityError as error:
        raise Conflict(
            "already_member", f"{email} is a member already. Change the role instead."
        ) from error
    _record(actor, team, user, "member.added", role=role)
    return membership


def _invite(actor: Actor, team: Team, *, email: str, role: Role) -> Invited:
    token = secrets.token_urlsafe(32)
    now = clock.now()
    lock_quota(team)  # one open invitation a person: each of two at once replaces the other
    Invitation.objects.filter(team=team, email=email, accepted_at=None, withdrawn_at=None).update(
        withdrawn_at=now
    )
    invitation = Invitation.objects.create(
        team=team,
        email=email,
        role=role,
        digest=digest_of(token),
        invited_by_id=actor.user_id,
        expires_at=now + timedelta(days=INVITATION_DAYS),
    )
    record_event(
        "member.invited",
        subject=f"invitation:{invitation.pk}",
        actor=actor,
        team=team,
        facts={"email": email, "role": role},
        audit=True,
    )
    return Invited(invitation=invitation, token=token)


@transaction.atomic
def withdraw_invitation(actor: Actor, team: Team, *, invitation_id: str) -> None:
    """End an open invitation; its link then says so. Raises `NotFound`."""
    require(actor, Permission.MEMBERS_EDIT, team=team)
    changed = Invitation.objects.filter(
        team=team, pk=invitation_id, accepted_at=None, withdrawn_at=None
    ).update(withdrawn_at=clock.now())
    if not changed:
        raise NotFound("not_found", "There is no such open invitation.")
    record_event(
        "member.uninvited",
        subject=f"invitation:{invitation_id}",
        actor=actor,
        team=team,
        audit=True,
    )


def find_invitation(token: str) -> Invitation:
    """Return the open invitation of a link; raise `NotFound` with the remedy otherwise."""
    invitation = (
        Invitation.objects.select_related("team", "invited_by")
        .filter(digest=digest_of(token), withdrawn_at=None)
        .first()
    )
    if invitation is None:
        raise NotFound(
            "not_found", "This link is not valid. Ask a manager of the team for another."
        )
    if invitation.accepted_at is not None:
        raise NotFound("used", "This link was used already. Sign in instead.")
    if invitation.expires_at <= clock.now():
        raise NotFound("expired", "This link has expired. Ask a manager of the team for another.")
    return invitation


@transaction.atomic
def accept_invitation(
    token: str, *, user: User | None = None, name: str = "", password: str | None = None
) -> User:
    """Join the team by a link: as the signed-in `user`, or as a new one (`name`, `password`).

    The link works once: of two at the same time one raises `NotFound`. A new account gets the
    address that the link was made for. Raises `Conflict` when that account exists already, or
    when the person is a member; the link then stays good.
    """
    invitation = find_invitation(token)
    taken = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, withdrawn_at=None).update(
        accepted_at=clock.now()
    )
    if not taken:
        raise NotFound("used", "This link was used already. Sign in instead.")
    if user is None:
        user = users.create_user(email=invitation.email, name=name, password=password)
    team, role = invitation.team, Role(invitation.role)
    _, is_new = Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    if not is_new:
        raise Conflict(
            "already_member",
            f"You are a member of {team.name} already. The link stays good for somebody else.",
        )
    actor = Actor(user_id=user.pk, email=user.email, name=user.name)
    invited = {} if invitation.email == user.email else {"invited": invitation.email}
    _record(actor, team, user, "member.joined", role=role, **invited)
    return user


@transaction.atomic
def change_role(actor: Actor, team: Team, *, user_id: str, role: str) -> Membership:
    """Give a member another role. A team keeps a manager unless a site admin takes the last."""
    require(actor, Permission.MEMBERS_EDIT, team=team)
    wanted = check_role(role)
    membership = _member(team, user_id)
    if wanted is not Role.MANAGER:
        _keep_a_manager(actor, team, membership)
    if membership.role != wanted:
        Membership.objects.filter(pk=membership.pk).update(role=wanted)
        _record(
            actor, team, membership.user, "member.role_changed", role=wanted, was=membership.role
        )
        membership.role = wanted
    return membership


@transaction.atomic
def remove_member(actor: Actor, team: Team, *, user_id: str) -> None:
    """Remove a member; anybody may remove oneself (leave). Tokens bound to the team end too."""
    if user_id != actor.user_id:
        require(actor, Permission.MEMBERS_EDIT, team=team)
    else:
        require(actor, Permission.TEAM_VIEW, team=team)
    membership = _member(team, user_id)
    _keep_a_manager(actor, team, membership)
    membership.user.api_tokens.filter(team=team, revoked_at=None).update(revoked_at=clock.now())
    membership.delete()
    verb = "member.left" if user_id == actor.user_id else "member.removed"
    _record(actor, team, membership.user, verb)


def _member(team: Team, user_id: str) -> Membership:
    """Return a member, with the team's lock held: nobody else changes or removes members now."""
    lock_quota(team)
    membership = team.memberships.select_related("user").filter(user_id=user_id).first()
    if membership is None:
        raise NotFound("not_found", "This person is not a member of the team.")
    return membership


def _keep_a_manager(actor: Actor, team: Team, membership: Membership) -> None:
    """Refuse to take the last manager away, unless a site admin does it.

    Expects the team's lock, so that two managers cannot leave at the same instant.
    """
    managers = list(team.memberships.filter(role=Role.MANAGER).values_list("user_id", flat=True))
    if managers == [membership.user_id] and not actor.can(Permission.SITE_EDIT):
        raise Conflict(
            "last_manager", "A team needs a manager. Make somebody else a manager first."
        )


def _record(actor: Actor, team: Team, user: User, action: str, **facts: str) -> None:
    """Record a change of a membership, and let the person's open sockets ask again."""
    push.hint(f"user.{user.pk}", kind="member")
    record_event(
        action,
        subject=f"user:{user.pk}",
        actor=actor,
        team=team,
        facts={"email": user.email, **facts},
        audit=True,
    )
