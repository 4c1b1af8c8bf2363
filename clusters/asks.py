"""Read-only questions to the outside within a request.

No transaction is open while they are asked, and their answer is never stored as status.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from clusters import connect, selectors
from clusters.schedulers.contract import NodeSeen, ReadsLogs, SeesNodes
from portal.core.errors import Unsupported
from portal.teams.models import Team

MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Some bytes of a stream, and where the next begin."""

    data: bytes
    next_offset: int


def read_output(
    cluster_id: str, key: str, *, stream: str, offset: int, limit: int = MOST_BYTES
) -> Output:
    """Read what a job has written to `stdout` or `stderr`, from a byte offset.

    Raises `Unsupported` where the cluster keeps no output, `Unavailable` when it cannot be read.
    """
    scheduler = connect.scheduler_of(selectors.cluster_by_id(cluster_id))
    if not isinstance(scheduler, ReadsLogs):
        raise Unsupported("unsupported", "This cluster does not keep the output of jobs.")
    data, cursor = scheduler.read_log(key, f"{stream}:{offset}", min(limit, MOST_BYTES))
    return Output(data=data, next_offset=int(cursor.rpartition(":")[2]))


def nodes_of(cluster_id: str) -> Sequence[NodeSeen]:
    """Return the machines that the scheduler shows now; none where it cannot tell.

    Raises `Unavailable` when it cannot be asked.
    """
    scheduler = connect.scheduler_of(selectors.cluster_by_id(cluster_id))
    return scheduler.nodes() if isinstance(scheduler, SeesNodes) else ()


def has_wall(cluster_id: str) -> bool:
    """Tell whether jobs there are kept from what the portal can read."""
    facts = selectors.facts_of(selectors.cluster_by_id(cluster_id))
    return not facts.is_local or settings.HAS_WALL


def runs_as(cluster_id: str, team: Team) -> str:
    """Say as whom the team's jobs run there and what keeps them from others; in a sentence."""
    cluster = selectors.cluster_by_id(cluster_id)
    owner = connect.owner_of(cluster, team)
    if owner:
        return f"Runs as a user of the team's own on this machine (uid {owner}), in its own folder."
    if selectors.facts_of(cluster).is_local:
        return "Runs as the portal's own user, and can read what this portal can."
    return "Runs as the cluster maps the team."
