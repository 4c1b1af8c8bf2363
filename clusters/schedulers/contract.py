"""What a scheduler must be able to do, and the values that cross its border (pure).

Three methods carry the product; everything more is a protocol of its own that callers ask for by
`isinstance`. Adapters raise `Unavailable`, `Denied`, `Rejected` or `Unsupported` of
portal.core.errors and nothing else. A key is ours: `<job id>-<attempt>`; it names the job outside.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

ExternalId = str


class Stage(StrEnum):
    """How far the scheduler says a job is."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"


class Ending(StrEnum):
    """Why a job ended, in the portal's words; the values are reason codes of the REST API."""

    COMPLETED = "completed"
    EXIT_CODE = "exit_code"
    CANCELLED = "user"
    TIME_LIMIT = "time_limit"
    OUT_OF_MEMORY = "out_of_memory"
    PREEMPTED = "preempted"
    NODE_FAILURE = "node_failure"
    REJECTED = "rejected"


class Signal(StrEnum):
    """Signals that `cancel` may send first; without one the scheduler ends the job its own way."""

    INT = "INT"
    TERM = "TERM"
    USR1 = "USR1"
    USR2 = "USR2"
    KILL = "KILL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job asks for; counts are per node."""

    nodes: int = 1
    gpus_per_node: int = 0
    gpu_type: str = ""
    cpus_per_node: int = 1
    memory_bytes_per_node: int = 0
    """0 leaves it to the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRequest:
    """A job as an adapter gets it. The same key twice is the same job."""

    key: str
    name: str
    """For people; adapters cut it to what their system takes."""
    owner: str
    """The Unix account, namespace or the like that the cluster maps the team to; may be empty."""
    script: str
    """What runs on the first node: a POSIX sh script that starts the agent."""
    environment: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    time_limit_seconds: int = 3600
    placement: Mapping[str, str] = field(default_factory=dict)
    """partition, account, qos, constraint and the like, as the cluster calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A job as the scheduler showed it; equal values mean that nothing changed."""

    external_id: ExternalId
    stage: Stage
    ending: Ending | None = None
    """Set when the stage is ended."""
    message: str = ""
    """The scheduler's own words."""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    """0 to 255; `None` when a signal ended it or nobody knows."""
    signal: int | None = None
    nodes: Sequence[str] = ()
    restart: int = 0
    """How often the scheduler itself started it anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A machine as the scheduler shows it."""

    name: str
    state: str
    """ready, down, draining or unknown."""
    cpus: int
    memory_bytes: int
    gpus: int = 0
    gpu_type: str = ""
    cpus_allocated: int = 0
    gpus_allocated: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Why a job waits: the scheduler's words, ours, and what to do."""

    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStep:
    """One thing that was tried: whether it held, and else what is wrong and how to mend it."""

    title: str
    is_ok: bool
    message: str = ""
    remedy: str = ""
    seconds: float = 0.0


class Scheduler(Protocol):
    """What every scheduler can do."""

    def submit(self, request: SubmitRequest) -> ExternalId:
        """Make the job exist and return its id outside; the same key twice returns the same id.

        Raises `Rejected` when the request can never work, `Unavailable` when it may later.
        """
        ...

    def observe(self, keys: Collection[str]) -> Mapping[str, Seen]:
        """Look at many jobs in one call: key → what was seen.

        A key that is absent was looked for and is not there. Raises `Unavailable` when it could
        not look; that is never the same.
        """
        ...

    def cancel(self, key: str, signal: Signal | None = None) -> None:
        """Ask the job to end; returns when accepted, not when dead. A job that is gone is fine."""
        ...


@runtime_checkable
class SeesNodes(Protocol):
    """A scheduler that can list its machines."""

    def nodes(self) -> Sequence[NodeSeen]:
        """Return every machine, in one call."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A scheduler that can say why jobs wait."""

    def why_pending(self, keys: Collection[str]) -> Mapping[str, Pending]:
        """Return key → why, for jobs that wait; in one call."""
        ...


@runtime_checkable
class Previews(Protocol):
    """A scheduler that can show what it would be sent, exactly."""

    def render(self, request: SubmitRequest) -> str:
        """Return the script or manifest; asks nobody."""
        ...


@runtime_checkable
class ReadsLogs(Protocol):
    """A scheduler that keeps the output of jobs on its side."""

    def read_log(self, key: str, cursor: str, limit: int) -> tuple[bytes, str]:
        """Return up to `limit` bytes after the cursor ("" is the beginning), and the next one."""
        ...


@runtime_checkable
class Estimates(Protocol):
    """A scheduler that can say when a job will start."""

    def start_of(self, keys: Collection[str]) -> Mapping[str, datetime]:
        """Return key → expected start, for those that it knows."""
        ...


@runtime_checkable
class Settles(Protocol):
    """A scheduler that can be waited for when a command has ended and it has yet to notice."""

    def settle(self, keys: Collection[str], *, seconds: float) -> None:
        """Return once it shows these jobs as ended, or when the seconds are over."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A scheduler that keeps files of jobs until it is told that nobody needs them."""

    def forget(self, key: str) -> None:
        """Delete what is kept of a job that has ended; one that is gone is fine."""
        ...


class Checks(Protocol):
    """What can try a cluster's way to run jobs, step by step."""

    def check(self) -> Sequence[CheckStep]:
        """Try every step, in the order in which a job needs them; changes nothing."""
        ...
