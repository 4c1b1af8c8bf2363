"""Jobs and agents' posts for tests."""

import base64
import json
from typing import Any

from clusters import services as clusters
from clusters.selectors import facts_of
from jobs.logs import posts, read, store
from jobs.models import Job
from jobs.selectors import built_in, newest_of
from jobs.services import attempts, builtin, jobs
from jobs.services.jobs import Wanted
from tests.people import World

OUT, ERR = "stdout", "stderr"


def make_job(world: World, **changes: Any) -> tuple[Job, str]:
    """Return a job and the hash of its agent's token."""
    clusters.ensure_local().teams.add(world.team)
    builtin.ensure_definitions()
    wanted = Wanted(
        version=newest_of(built_in("shell-script")),
        team=world.team,
        cluster=facts_of(clusters.ensure_local()),
    )
    job = jobs.submit(world.actor("member"), wanted)
    token = attempts.token_of(job)
    if changes:
        Job.objects.filter(pk=job.pk).update(**changes)
    return job, attempts.digest_of(token)


def post(token_hash: str, *chunks: dict[str, Any], **more: Any) -> store.Answer:
    body = json.dumps({"chunks": list(chunks), **more}).encode()
    return store.take([posts.parse(body, token_hash=token_hash)])[0]


def chunk(stream: str, offset: int, data: bytes) -> dict[str, Any]:
    return {
        "stream": stream,
        "offset": offset,
        "at": 1_800_000_000.5,
        "data": base64.b64encode(data).decode(),
    }


def text(job: Job, stream: str = "all", **only: int) -> bytes:
    log = read.head(job.pk, stream=stream)
    if not only:
        return b"".join(part.data for part in read.whole(log))
    window = read.read(log, offset=0, limit=1 << 20, only=read.Only(**only))
    return b"".join(part.data for part in window.parts)
