"""Read-only questions to the outside within a request.

No transaction is open while they are asked, and their answer is never stored as status.
"""

from dataclasses import dataclass

from clusters import connect, selectors
from clusters.schedulers.contract import ReadsLogs
from portal.core.errors import Unsupported

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
