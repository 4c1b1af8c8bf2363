"""What the scheduler kept of a job whose agent never spoke: a log for what failed before it.

The agent may have had no python3, no folder or no way to start; its own complaints are there too.
"""

from typing import Final

from clusters import connect
from clusters.schedulers.contract import ReadsLogs
from jobs.logs import store
from jobs.logs.posts import STREAMS, Chunk, Post
from jobs.models import Attempt
from jobs.plan import key_of
from portal.core import clock
from portal.core.errors import OutsideError

MOST_BYTES: Final = 1 << 20
NO_RESTART: Final = -1
"""Counted by no agent, so that the lines of one that comes late are not taken for these."""


def pull(job_id: str) -> None:
    """Take over what the scheduler has of the newest attempt, once, and call its log complete.

    A scheduler that cannot be asked now is asked again by the keeper. An agent that was only kept
    from speaking may still post, until its token ends.
    """
    attempt = (
        Attempt.objects.select_related("job__cluster")
        .filter(job=job_id, agent__isnull=True, exit__isnull=True)
        .order_by("-number")
        .first()
    )
    if attempt is None:
        return
    job = attempt.job
    scheduler = connect.scheduler_of(job.cluster)
    chunks = []
    if isinstance(scheduler, ReadsLogs):
        key = key_of(job.pk, attempt=attempt.number)
        try:
            found = {s: scheduler.read_log(key, f"{s}:0", MOST_BYTES)[0] for s in STREAMS}
        except OutsideError:
            return
        at = (job.ended_at or clock.now()).timestamp()
        chunks = [Chunk(stream=s, offset=0, at=at, data=data) for s, data in found.items() if data]
    end = {"code": job.exit_code, "signal": job.signal, "error": store.NO_AGENT}
    post = Post(
        token_hash=attempt.token_hash,
        rank=0,
        restart=NO_RESTART,
        agent={},
        chunks=chunks,
        exit=end,
    )
    store.take([post])
