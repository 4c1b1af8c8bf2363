"""What would happen to a job if it were submitted now; nothing is written and nothing asked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from clusters.values import use_of
from jobs import selectors
from jobs import spec as specs
from jobs.admission import Waiting, never_fits, wait_for_disk
from jobs.services.jobs import Checked, Wanted, admission_of, check, refuse, script_of
from jobs.states import Reason
from portal.core import clock, disk
from portal.core.errors import Refused
from portal.teams.models import Limit
from portal.teams.roles import Actor

STARTS, WAITS, REFUSED = "starts", "waits", "refused"
_OWN = "preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`starts`, `waits` or `refused`, with the reason and what would work instead."""

    verdict: str
    code: str = ""
    message: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The exact script, what the job would see, and what admission says."""

    script: str
    environment: Mapping[str, str]
    """Secrets by their names; the values are never shown."""
    resources: Mapping[str, Any]
    time_limit_seconds: int
    decision: Decision


def preview(actor: Actor, wanted: Wanted) -> Preview:
    """Return what submitting would do. Raises `Invalid` as `submit` does."""
    checked = check(actor, wanted)
    spec = checked.spec
    secrets = {name: f"(secret {secret})" for name, secret in spec.secrets.items()}
    return Preview(
        script=script_of(spec, checked.parameters),
        environment={**specs.environment_of(checked.parameters), **spec.env, **secrets},
        resources=asdict(checked.resources),
        time_limit_seconds=checked.time_limit_seconds,
        decision=_decide(actor, wanted, checked),
    )


def _decide(actor: Actor, wanted: Wanted, checked: Checked) -> Decision:
    try:
        refuse(actor, wanted, checked)
    except Refused as error:
        return Decision(verdict=REFUSED, code=error.code, message=error.message)
    now = clock.now()
    own = Waiting(id=_OWN, demand=checked.demand, priority=checked.spec.priority, queued_at=now)
    limit = Limit.objects.get(team=wanted.team)
    line = selectors.line_of(wanted.team)
    verdicts = admission_of(wanted.team, limit, line, now=now, beside=[own])
    found = next(verdict for verdict in verdicts if verdict.id == _OWN)
    if disk.is_low():
        found = wait_for_disk(_OWN)
    if found.is_admitted and _is_full(wanted, checked):
        return Decision(
            verdict=WAITS,
            code=Reason.WAITING_FOR_CAPACITY,
            message=f"The cluster is in use: {use_of(wanted.cluster.nodes).words}.",
            advice="It starts by itself when there is room.",
        )
    if found.is_admitted:
        return Decision(verdict=STARTS, message="It can start now.")
    return Decision(
        verdict=WAITS, code=found.reason or "", message=found.message, advice=found.advice
    )


def _is_full(wanted: Wanted, checked: Checked) -> bool:
    """Tell whether the machines, as seen last, hold too much else to start the job now."""
    free = [
        replace(node, cpus=node.cpus - node.cpus_allocated, gpus=node.gpus - node.gpus_allocated)
        for node in wanted.cluster.nodes
        if node.state == "ready"
    ]
    if not wanted.cluster.nodes:
        return False
    return not free or bool(never_fits(checked.resources, free))
