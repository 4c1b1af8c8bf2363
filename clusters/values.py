"""Values of clusters that cross rooms (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.schedulers.contract import NodeSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is in use of some machines, and of how much."""

    machines: int
    cpus: int
    cpus_taken: int
    gpus: int
    gpus_taken: int

    @property
    def words(self) -> str:
        """The scarcer thing in words: GPUs where there are some."""
        if self.gpus:
            return f"{self.gpus_taken} of {self.gpus} GPUs"
        return f"{self.cpus_taken} of {self.cpus} CPUs"

    @property
    def percent(self) -> float:
        """The share of it, from 0 to 100."""
        taken, whole = (self.gpus_taken, self.gpus) if self.gpus else (self.cpus_taken, self.cpus)
        return round(min(100, 100 * taken / whole), 2) if whole else 0.0


def use_of(nodes: Sequence[NodeSeen]) -> Use:
    """Add up what is in use of the machines."""
    return Use(
        machines=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        cpus_taken=sum(node.cpus_allocated for node in nodes),
        gpus=sum(node.gpus for node in nodes),
        gpus_taken=sum(node.gpus_allocated for node in nodes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster as jobs need to know it."""

    id: str
    slug: str
    name: str
    scheduler: str
    """local, slurm or kubernetes."""
    is_shared: bool = False
    """Every team may launch there."""
    nodes: tuple[NodeSeen, ...] = ()
    """The machines that the scheduler showed last; none when it never could."""

    @property
    def is_local(self) -> bool:
        """The cluster is the machine of the portal itself."""
        return self.scheduler == "local"
