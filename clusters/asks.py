"""Read-only questions to the outside within a request.

No transaction is open while they are asked, and their answer is never stored as status.
"""

from collections.abc import Sequence

from django.conf import settings
from django.core.cache import cache

from clusters import connect, selectors
from clusters.models import Cluster
from clusters.schedulers.contract import CheckStep, NodeSeen, SeesNodes
from portal.core.errors import Conflict
from portal.teams.models import Team
from portal.teams.roles import Actor

CHECK_SECONDS = 2


def nodes_of(cluster_id: str) -> Sequence[NodeSeen]:
    """Return the machines that the scheduler shows now; none where it cannot tell.

    Raises `Unavailable` when it cannot be asked.
    """
    scheduler = connect.scheduler_of(selectors.cluster_by_id(cluster_id))
    return scheduler.nodes() if isinstance(scheduler, SeesNodes) else ()


def check(actor: Actor, cluster: Cluster) -> Sequence[CheckStep]:
    """Try the way to the cluster now, step by step; once in two seconds for a person.

    Raises `Conflict` when asked too soon, `Unsupported` where nothing can be tried.
    """
    if not cache.add(f"check:{actor.user_id}:{cluster.pk}", 1, timeout=CHECK_SECONDS):
        raise Conflict("too_soon", "You checked it a moment ago. Wait two seconds.")
    return connect.checks_of(cluster).check()


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
