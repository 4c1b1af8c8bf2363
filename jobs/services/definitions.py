"""Job definitions: each save is a new version, and no version ever changes."""

from typing import Any

from django.db import IntegrityError, transaction

from jobs import spec as specs
from jobs.models import DefinitionVersion, Job, JobDefinition
from jobs.states import Phase
from portal.core import clock
from portal.core.errors import Conflict, FieldError, Invalid, NotAllowed
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event
from portal.teams.services.names import check_name
from portal.teams.services.teams import check_slug

MOST_NAMED = 20


@transaction.atomic
def create_definition(
    actor: Actor, team: Team, *, slug: str, name: str, spec: Any
) -> JobDefinition:
    """Create a definition with its first version.

    Raises `Invalid` with a pointer below `/spec` for every fault, `Conflict` when the slug is
    taken in the team.
    """
    require(actor, Permission.DEFINITIONS_EDIT, team=team)
    checked = check_spec(spec)
    definition = JobDefinition(
        team=team, slug=check_slug(slug), name=check_name(name), created_by_id=actor.user_id
    )
    try:
        with transaction.atomic():
            definition.save(force_insert=True)
    except IntegrityError as error:
        message = f"The team has a definition {slug} already. Save a new version of that one."
        raise Conflict.at("slug", message, code="slug_taken") from error
    _add_version(actor, definition, number=1, spec=checked)
    _record(actor, definition, "definition.created", version=1)
    return definition


@transaction.atomic
def save_version(
    actor: Actor, definition: JobDefinition, *, spec: Any, name: str | None = None
) -> JobDefinition:
    """Make the spec the newest version; the same spec again makes none. Raises `Invalid`.

    Of two at the same time one raises `Conflict`: its author has not seen the other's version.
    """
    _may_edit(actor, definition)
    checked = check_spec(spec)
    columns: dict[str, Any] = {}
    if name is not None and check_name(name) != definition.name:
        columns["name"] = check_name(name)
    newest = definition.versions.get(number=definition.latest)
    if newest.spec != checked:
        columns["latest"] = definition.latest + 1
    if not columns:
        return definition
    found = JobDefinition.objects.filter(pk=definition.pk, latest=definition.latest)
    if not found.update(**columns):
        raise Conflict("newer_version", "Somebody saved a version meanwhile. Look at it first.")
    definition.refresh_from_db()
    if "latest" in columns:
        _add_version(actor, definition, number=definition.latest, spec=checked)
    _record(actor, definition, "definition.changed", version=definition.latest)
    return definition


@transaction.atomic
def delete_definition(actor: Actor, definition: JobDefinition) -> None:
    """Take a definition out of use; its versions stay for the jobs that ran them.

    Raises `Conflict` with the jobs that must end first.
    """
    _may_edit(actor, definition)
    left = [str(phase) for phase in Phase if not phase.is_final]
    alive = Job.objects.filter(version__definition=definition, phase__in=left).order_by("-pk")
    if found := list(alive.values_list("pk", flat=True)[:MOST_NAMED]):
        message = f"Jobs of this definition have not ended: {', '.join(found)}. Stop them, or wait."
        raise Conflict("in_use", message, jobs=found)
    changed = JobDefinition.objects.filter(pk=definition.pk, archived_at=None).update(
        archived_at=clock.now()
    )
    if changed:
        _record(actor, definition, "definition.deleted")


def check_spec(spec: Any) -> dict[str, Any]:
    """Return the raw spec; raise `Invalid` with a pointer below `/spec` for every fault."""
    faults = specs.check(spec)
    if faults:
        raise Invalid(
            "invalid_spec",
            f"The definition has {len(faults)} faults; nothing was saved.",
            errors=[
                FieldError(pointer=f"/spec{fault.pointer}", message=fault.message)
                for fault in faults
            ],
        )
    checked: dict[str, Any] = spec
    return checked


def _may_edit(actor: Actor, definition: JobDefinition) -> None:
    if definition.team is None:
        raise NotAllowed(
            "built_in", "A built-in definition cannot be changed. Copy it into your team instead."
        )
    require(actor, Permission.DEFINITIONS_EDIT, team=definition.team)


def _add_version(actor: Actor, definition: JobDefinition, *, number: int, spec: Any) -> None:
    DefinitionVersion.objects.create(
        definition=definition, number=number, spec=spec, created_by_id=actor.user_id
    )


def _record(actor: Actor, definition: JobDefinition, action: str, **facts: Any) -> None:
    record_event(
        action,
        subject=f"definition:{definition.pk}",
        actor=actor,
        team=definition.team,
        facts={"name": definition.slug, **facts},
    )
