"""People: accounts, site roles, deactivation, the first admin."""

import secrets

from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from portal.core import clock, push
from portal.core.errors import Conflict, Invalid, NotFound
from portal.teams.models import ApiToken, User
from portal.teams.roles import Actor, Permission, Scope, SiteRole
from portal.teams.services import tokens
from portal.teams.services.access import require
from portal.teams.services.events import record_event
from portal.teams.services.names import check_name


def check_password(password: str, user: User | None = None) -> str:
    """Return the password; raise `Invalid` with what is wrong with it."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid.at("password", " ".join(error.messages)) from error
    return password


@transaction.atomic
def create_user(
    *,
    email: str,
    password: str | None = None,
    name: str = "",
    site_role: SiteRole = SiteRole.NONE,
    must_change_password: bool = False,
) -> User:
    """Create a person whose address counts as proven. Raises `Conflict` when it is taken."""
    user = User(email=email.strip().lower(), name=check_name(name, least=0))
    if password is not None and not must_change_password:
        check_password(password, user)
    try:
        with transaction.atomic():
            user = User.objects.create_user(
                email,
                password,
                name=user.name,
                site_role=site_role,
                must_change_password=must_change_password,
            )
    except IntegrityError as error:
        raise Conflict("email_taken", f"{email} has an account already. Sign in first.") from error
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


@transaction.atomic
def update_profile(actor: Actor, *, name: str) -> User:
    """Change the actor's own name."""
    User.objects.filter(pk=actor.user_id).update(name=check_name(name, least=0))
    return User.objects.get(pk=actor.user_id)


@transaction.atomic
def set_site_role(actor: Actor, *, user_id: str, site_role: str) -> User:
    """Make somebody admin, auditor or neither. The site keeps an active admin."""
    require(actor, Permission.SITE_EDIT)
    try:
        wanted = SiteRole(site_role)
    except ValueError as error:
        raise Invalid.at("site_role", "Choose admin, auditor, or nothing.") from error
    user = _locked(user_id)
    if wanted is not SiteRole.ADMIN:
        _keep_an_admin(user)
    if user.site_role != wanted:
        User.objects.filter(pk=user.pk).update(site_role=wanted)
        _record(actor, user, "user.site_role_changed", was=user.site_role, role=wanted)
        user.site_role = wanted
    return user


@transaction.atomic
def change_user(
    actor: Actor, *, user_id: str, site_role: str | None = None, is_active: bool | None = None
) -> None:
    """Change a person's site role and whether the account is active; `None` leaves it."""
    require(actor, Permission.SITE_EDIT)
    if site_role is not None:
        set_site_role(actor, user_id=user_id, site_role=site_role)
    if is_active is not None:
        (reactivate if is_active else deactivate)(actor, user_id=user_id)


@transaction.atomic
def deactivate(actor: Actor, *, user_id: str) -> User:
    """End a person's sessions and tokens at once; memberships stay for a return."""
    require(actor, Permission.SITE_EDIT)
    user = _locked(user_id)
    _keep_an_admin(user)
    if user.is_active:
        now = clock.now()
        User.objects.filter(pk=user.pk).update(is_active=False, deactivated_at=now)
        user.api_tokens.filter(revoked_at=None).update(revoked_at=now)
        end_sessions(user)
        _record(actor, user, "user.deactivated")
        user.is_active = False
    return user


@transaction.atomic
def reactivate(actor: Actor, *, user_id: str) -> User:
    """Let a deactivated person sign in again; tokens stay revoked."""
    require(actor, Permission.SITE_EDIT)
    user = _locked(user_id)
    if not user.is_active:
        User.objects.filter(pk=user.pk).update(is_active=True, deactivated_at=None)
        _record(actor, user, "user.reactivated")
        user.is_active = True
    return user


def end_sessions(user: User, *, except_key: str | None = None) -> int:
    """Sign the person out everywhere, or everywhere but in one session; return how many ended."""
    sessions = UserSession.objects.filter(user=user).exclude(session_key=except_key or "")
    ended = 0
    for session in sessions:
        session.end()
        ended += 1
    push.hint(f"user.{user.pk}", kind="signed_out")
    return ended


@transaction.atomic
def bootstrap() -> tuple[User, str | None] | None:
    """Create the first admin, once: the user and, if one was made, the one-time password.

    `None` when there are people already. The bootstrap token becomes an admin API token as given.
    """
    if User.objects.exists():
        return None
    given = settings.BOOTSTRAP_ADMIN_PASSWORD
    password = given or "-".join(secrets.token_hex(3) for _ in range(4))
    user = create_user(
        email=settings.BOOTSTRAP_ADMIN_EMAIL,
        password=password,
        site_role=SiteRole.ADMIN,
        must_change_password=given is None,
    )
    if settings.BOOTSTRAP_TOKEN:
        text = settings.BOOTSTRAP_TOKEN
        ApiToken.objects.create(
            user=user,
            name="bootstrap",
            prefix=text[: tokens.SHOWN],
            digest=tokens.digest_of(text),
            scopes=[Scope.ADMIN],
        )
    record_event(
        "user.bootstrapped", subject=f"user:{user.pk}", facts={"email": user.email}, audit=True
    )
    return user, None if given else password


def _locked(user_id: str) -> User:
    """Return the person, with the site's admins held so that the last one cannot vanish."""
    lock_site()
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        raise NotFound("not_found", "There is no such person.")
    return user


def lock_site() -> None:
    """Serialise changes of site roles until the end of the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('slipway.site'))")


def _keep_an_admin(user: User) -> None:
    admins = User.objects.filter(site_role=SiteRole.ADMIN, is_active=True)
    if user.site_role == SiteRole.ADMIN and not admins.exclude(pk=user.pk).exists():
        raise Conflict("last_admin", "The site needs an admin. Make somebody else an admin first.")


def _record(actor: Actor, user: User, action: str, **facts: str) -> None:
    record_event(
        action,
        subject=f"user:{user.pk}",
        actor=actor,
        facts={"email": user.email, **facts},
        audit=True,
    )
