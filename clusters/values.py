"""Values of clusters that cross rooms (pure)."""

from dataclasses import dataclass

from clusters.schedulers.contract import NodeSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster as jobs need to know it."""

    id: str
    slug: str
    name: str
    scheduler: str
    """local, slurm or kubernetes."""
    nodes: tuple[NodeSeen, ...] = ()
    """The machines that the scheduler showed last; none when it never could."""

    @property
    def is_local(self) -> bool:
        """The cluster is the machine of the portal itself."""
        return self.scheduler == "local"
