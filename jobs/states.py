"""The phases of a job, the reasons, and the edges between them (pure).

The final phase is a function of the reason, so the reason is written first and a crash never loses
it. Codes are those of the REST API.
"""

from enum import StrEnum


class Phase(StrEnum):
    """How far a job is."""

    QUEUED = "QUEUED"
    ADMITTED = "ADMITTED"
    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        """Nothing happens to the job any more."""
        return self in FINAL

    @property
    def is_live(self) -> bool:
        """The job occupies quota, and the scheduler may know it."""
        return self in LIVE


FINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED})
LIVE = frozenset({Phase.ADMITTED, Phase.SUBMITTED, Phase.RUNNING, Phase.STOPPING})


class Reason(StrEnum):
    """Why a job waits, or why it ended."""

    WAITING_FOR_QUOTA = "waiting_for_quota"
    WAITING_FOR_BUDGET = "waiting_for_budget"
    WAITING_FOR_CAPACITY = "waiting_for_capacity"
    WAITING_FOR_SCHEDULER = "waiting_for_scheduler"
    CLUSTER_UNAVAILABLE = "cluster_unavailable"
    DISK_FLOOR = "disk_floor"
    DEPENDENCY = "dependency"
    COMPLETED = "completed"
    USER = "user"
    IDLE = "idle"
    BUDGET_EXHAUSTED = "budget_exhausted"
    NO_CAPACITY = "no_capacity"
    TIME_LIMIT = "time_limit"
    PREEMPTED = "preempted"
    NODE_FAILURE = "node_failure"
    OUT_OF_MEMORY = "out_of_memory"
    LOST = "lost"
    EXIT_CODE = "exit_code"
    REJECTED = "rejected"


ENDS: dict[Reason, Phase] = {
    Reason.COMPLETED: Phase.SUCCEEDED,
    Reason.USER: Phase.CANCELLED,
    Reason.IDLE: Phase.CANCELLED,
    Reason.BUDGET_EXHAUSTED: Phase.CANCELLED,
    Reason.NO_CAPACITY: Phase.CANCELLED,
    Reason.TIME_LIMIT: Phase.FAILED,
    Reason.PREEMPTED: Phase.FAILED,
    Reason.NODE_FAILURE: Phase.FAILED,
    Reason.OUT_OF_MEMORY: Phase.FAILED,
    Reason.LOST: Phase.FAILED,
    Reason.EXIT_CODE: Phase.FAILED,
    Reason.REJECTED: Phase.FAILED,
}
WAITS = frozenset(Reason) - frozenset(ENDS)
# Reasons for which a definition may ask for another attempt.
RETRYABLE = frozenset(
    {
        Reason.PREEMPTED,
        Reason.NODE_FAILURE,
        Reason.OUT_OF_MEMORY,
        Reason.LOST,
        Reason.EXIT_CODE,
    }
)

EDGES: dict[Phase, frozenset[Phase]] = {
    Phase.QUEUED: frozenset({Phase.ADMITTED, Phase.STOPPING, Phase.CANCELLED, Phase.FAILED}),
    Phase.ADMITTED: frozenset(
        {Phase.SUBMITTED, Phase.QUEUED, Phase.STOPPING, Phase.CANCELLED, Phase.FAILED}
    ),
    Phase.SUBMITTED: frozenset(
        {Phase.RUNNING, Phase.QUEUED, Phase.STOPPING, Phase.SUCCEEDED, Phase.FAILED}
        | {Phase.SUBMITTED}
    ),
    Phase.RUNNING: frozenset(
        {Phase.SUBMITTED, Phase.QUEUED, Phase.STOPPING, Phase.SUCCEEDED, Phase.FAILED}
    ),
    Phase.STOPPING: frozenset({Phase.CANCELLED, Phase.FAILED, Phase.SUCCEEDED}),
    Phase.SUCCEEDED: frozenset(),
    Phase.FAILED: frozenset(),
    Phase.CANCELLED: frozenset(),
}


def end_of(reason: Reason) -> Phase:
    """Return the final phase that a reason leads to. Raises `KeyError` for a waiting reason."""
    return ENDS[reason]


def may_go(was: Phase, becomes: Phase) -> bool:
    """Tell whether a job may go from one phase to the other."""
    return becomes in EDGES[was]
