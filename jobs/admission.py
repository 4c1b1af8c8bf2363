"""Decides who of a team may start, who waits and why, and what would fit (pure).

A request that is larger than a whole limit is refused for good; everything else waits its turn. The
order is priority, then age. A smaller job may pass one that does not fit yet, but once the first in
line has waited for `PATIENCE`, nothing behind it is admitted until it starts: large jobs are not
starved by a stream of small ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clusters.schedulers.contract import NodeSeen, Resources
from jobs.states import Reason

PATIENCE = timedelta(minutes=15)
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one job occupies while it lives."""

    nodes: int
    gpus: int
    gpu_type: str = ""
    """Empty: any type, which counts against the total alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a team may use at once; `None` is no limit."""

    gpus: int | None = None
    nodes: int | None = None
    running_jobs: int | None = None
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job in line."""

    id: str
    demand: Demand
    priority: int
    queued_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The request alone is larger than a whole limit; `fits` says what would work."""

    message: str
    fits: str
    limit: str
    """The limit that forbids it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What happens to one job in line: admitted, or why it waits and what to do."""

    id: str
    is_admitted: bool
    reason: Reason | None = None
    message: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class _Room:
    """One limit as it applies to a demand: its name, its size, what is used, what is wanted."""

    name: str
    words: str
    most: int
    used: int
    wanted: int

    @property
    def left(self) -> int:
        return max(0, self.most - self.used)


def refusal(demand: Demand, *, limits: Limits) -> Refusal | None:
    """Return why the request can never start under these limits, or `None`.

    A limit of zero running jobs means paused, so it waits; a limit that is cut later waits too.
    """
    for room in _rooms(demand, limits, used=()):
        if room.name == "running_jobs" or room.wanted <= room.most:
            continue
        per_node = demand.gpus // demand.nodes if demand.nodes else demand.gpus
        fits = f"up to {room.most} {room.words}"
        if room.name != "nodes" and per_node and room.most >= per_node:
            count = room.most // per_node
            fits += f", such as {count} node{'s' * (count != 1)} × {per_node} GPUs"
        return Refusal(
            message=f"It asks for {room.wanted} {room.words}; the team's limit is {room.most}.",
            fits=f"{fits[0].upper()}{fits[1:]} would fit. A site admin can raise the limit.",
            limit=room.name,
        )
    return None


def admit(
    line: Iterable[Waiting], *, limits: Limits, live: Sequence[Demand], now: datetime
) -> list[Verdict]:
    """Decide about every job in line, given what the team's live jobs occupy already."""
    used = list(live)
    verdicts: list[Verdict] = []
    held_by: str | None = None
    for job in sorted(line, key=lambda w: (-w.priority, w.queued_at, w.id)):
        short = next((r for r in _rooms(job.demand, limits, used=used) if r.wanted > r.left), None)
        if held_by is not None:
            verdicts.append(_behind(job, held_by))
        elif short is None:
            used.append(job.demand)
            verdicts.append(Verdict(id=job.id, is_admitted=True))
        else:
            verdicts.append(_short(job, short))
            if now - job.queued_at >= PATIENCE and not _is_paused(limits):
                held_by = job.id
    return verdicts


def wait_for_disk(job_id: str) -> Verdict:
    """Return what every job in line is told while the portal's disk is nearly full."""
    return Verdict(
        id=job_id,
        is_admitted=False,
        reason=Reason.DISK_FLOOR,
        message="The portal's disk is nearly full, so no job is started.",
        advice="An operator can free space, or lower SLIPWAY_DISK_FLOOR_BYTES.",
    )


def never_fits(wanted: Resources, nodes: Sequence[NodeSeen]) -> str:
    """Return why no set of these machines can ever hold the job; empty when one can.

    Machines that are down count: they may come back. Nothing is said of a cluster without nodes.
    """
    if not nodes:
        return ""
    left = list(nodes)
    if wanted.gpus_per_node and wanted.gpu_type:
        left = [node for node in left if node.gpu_type.lower() == wanted.gpu_type.lower()]
        if not left:
            kinds = sorted({node.gpu_type for node in nodes if node.gpu_type}) or ["none"]
            return f"It asks for {wanted.gpu_type} GPUs; the cluster has {', '.join(kinds)}."
    memory = -(-wanted.memory_bytes_per_node // GIB)
    for words, count, has in (
        ("GPUs", wanted.gpus_per_node, [node.gpus for node in left]),
        ("CPUs", wanted.cpus_per_node, [node.cpus for node in left]),
        ("GiB of memory", memory, [node.memory_bytes // GIB for node in left]),
    ):
        if count > max(has):
            thing = words.removesuffix("s") if count == 1 else words
            return f"It asks for {count} {thing} a node; the largest has {max(has)}."
    left = [node for node in left if _holds(node, wanted)]
    if len(left) < wanted.nodes:
        return f"It asks for {wanted.nodes} such nodes; the cluster has {len(left)}."
    return ""


def _holds(node: NodeSeen, wanted: Resources) -> bool:
    return (
        node.gpus >= wanted.gpus_per_node
        and node.cpus >= wanted.cpus_per_node
        and node.memory_bytes >= wanted.memory_bytes_per_node
    )


def _rooms(demand: Demand, limits: Limits, *, used: Sequence[Demand]) -> Iterable[_Room]:
    if limits.running_jobs is not None:
        yield _Room("running_jobs", "running jobs", limits.running_jobs, len(used), 1)
    if limits.nodes is not None:
        taken = sum(d.nodes for d in used)
        yield _Room("nodes", "nodes", limits.nodes, taken, demand.nodes)
    if limits.gpus is not None and demand.gpus:
        yield _Room("gpus", "GPUs", limits.gpus, sum(d.gpus for d in used), demand.gpus)
    most = limits.gpus_by_type.get(demand.gpu_type) if demand.gpus else None
    if most is not None:
        taken = sum(d.gpus for d in used if d.gpu_type == demand.gpu_type)
        words = f"{demand.gpu_type.upper()} GPUs"
        yield _Room(f"gpus_by_type.{demand.gpu_type}", words, most, taken, demand.gpus)


def _is_paused(limits: Limits) -> bool:
    return limits.running_jobs == 0


def _short(job: Waiting, room: _Room) -> Verdict:
    if room.name == "running_jobs":
        message = f"The team runs {room.used} jobs, and {room.most} is its limit."
        if room.most == 0:
            message = "The team is paused: its limit of running jobs is 0."
    else:
        message = (
            f"It needs {room.wanted} {room.words}; {room.left} of the team's {room.most} are free."
        )
    fits = room.left if room.name != "running_jobs" else 0
    advice = f"A job with {fits} {room.words} could start now." if fits else ""
    return Verdict(
        id=job.id,
        is_admitted=False,
        reason=Reason.WAITING_FOR_QUOTA,
        message=message,
        advice=advice
        or "It starts when another job of the team ends, or when the limit is raised.",
    )


def _behind(job: Waiting, first: str) -> Verdict:
    return Verdict(
        id=job.id,
        is_admitted=False,
        reason=Reason.WAITING_FOR_QUOTA,
        message=f"Job {first} is ahead of it and has waited longest; nothing passes it any more.",
        advice="A higher priority would put this job ahead.",
    )
