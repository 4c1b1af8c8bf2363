"""Team secrets: written, replaced, deleted, and read by running jobs alone."""

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from portal.core import ids
from portal.core.errors import Conflict, Invalid, NotFound
from portal.teams.models import SECRET_VALUES, Secret, Team, secret_name_validator
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event

MOST_BYTES = 64 * 1024


@transaction.atomic
def create_secret(actor: Actor, team: Team, *, name: str, value: str) -> Secret:
    """Store a new secret. Raises `Conflict` when the name is taken."""
    require(actor, Permission.SECRETS_EDIT, team=team)
    try:
        secret_name_validator(name)
    except ValidationError as error:
        raise Invalid.at("name", error.messages[0]) from error
    row_id = ids.new()
    sealed = _sealed(row_id, value)
    try:
        with transaction.atomic():
            secret = Secret.objects.create(
                pk=row_id, team=team, name=name, ciphertext=sealed, created_by_id=actor.user_id
            )
    except IntegrityError as error:
        message = f"The team has a secret {name} already. Replace its value instead."
        raise Conflict.at("name", message, code="name_taken") from error
    _record(actor, team, secret, "secret.created")
    return secret


@transaction.atomic
def replace_secret(actor: Actor, team: Team, *, name: str, value: str) -> Secret:
    """Give a secret another value; jobs that start from now on get it. Raises `NotFound`."""
    require(actor, Permission.SECRETS_EDIT, team=team)
    secret = _find(team, name)
    rows = Secret.objects.filter(pk=secret.pk)
    if not rows.update(ciphertext=_sealed(secret.pk, value), updated_at=Now()):
        raise _gone()
    secret.refresh_from_db()
    _record(actor, team, secret, "secret.replaced")
    return secret


@transaction.atomic
def delete_secret(actor: Actor, team: Team, *, name: str) -> None:
    """Delete a secret for good. Raises `NotFound`."""
    require(actor, Permission.SECRETS_EDIT, team=team)
    secret = _find(team, name)
    if not Secret.objects.filter(pk=secret.pk).delete()[0]:
        raise _gone()
    _record(actor, team, secret, "secret.deleted")


def _find(team: Team, name: str) -> Secret:
    secret = team.secrets.filter(name=name).first()
    if secret is None:
        raise _gone()
    return secret


def _gone() -> NotFound:
    return NotFound("not_found", "The team has no secret of that name.")


def _sealed(row_id: str, value: str) -> bytes:
    size = len(value.encode())
    if not 1 <= size <= MOST_BYTES:
        message = f"A value has 1 to {MOST_BYTES:,} bytes; this one has {size:,}."
        raise Invalid.at("value", message)
    return SECRET_VALUES.seal(row_id, value)


def _record(actor: Actor, team: Team, secret: Secret, action: str) -> None:
    record_event(
        action,
        subject=f"secret:{secret.pk}",
        actor=actor,
        team=team,
        facts={"name": secret.name},
        audit=True,
    )
