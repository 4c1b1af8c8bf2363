"""Keeping logs within bounds: days made ahead, finished logs compacted, old ones forgotten.

Rows of chunks are never deleted one by one. A log over its limit loses the middle at once; a day's
partition goes when every log in it is compacted; an object goes after `SLIPWAY_LOG_DAYS`.
"""

import logging
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from clusters import connect
from clusters.schedulers.contract import Forgets
from jobs import selectors, wakeups
from jobs.logs import partitions, read
from jobs.logs.frames import Frame, Row, pack, write_index
from jobs.logs.store import NO_AGENT
from jobs.models import Attempt, Job, LogCursor
from jobs.plan import key_of
from jobs.states import FINAL
from portal.core import clock
from portal.core.errors import OutsideError

log = logging.getLogger(__name__)
A_PASS: Final = 500
STEP_BYTES: Final = 1 << 20
TOKEN_OUTLIVES: Final = timedelta(hours=1)
MEMORY_BYTES: Final = 8 << 20


def keep() -> None:
    """Do all of it once; what fails for one log is logged, and tried again the next time."""
    partitions.prepare()
    for cursor in LogCursor.objects.filter(position__gt=settings.LOG_MAX_BYTES, archived_at=None):
        drop_middle(cursor)
    for job_id in selectors.mute_jobs():
        wakeups.pull_log(job_id)
    for job_id in _finished():
        try:
            compact(job_id)
        except SoftTimeLimitExceeded:
            raise
        except Exception:
            log.exception("log not compacted", extra={"job": job_id})
    _forget()
    today = clock.now().date()
    for day in partitions.days():
        if day < today - timedelta(days=1) and not partitions.is_needed(day):
            partitions.drop(day)


def drop_middle(cursor: LogCursor) -> None:
    """Drop what lies between the first and the newest half of the limit, whole chunks at a time."""
    half = settings.LOG_MAX_BYTES // 2
    with connection.cursor() as sql:
        sql.execute(
            "DELETE FROM jobs_logchunk WHERE job_id = %s AND day >= %s"
            " AND position >= %s AND position + size <= %s",
            [cursor.pk, cursor.first_day, half, cursor.position - half],
        )


def compact(job_id: str) -> None:
    """Write a finished log as one object and say so; from then on nobody appends."""
    head = read.head(job_id)
    if head.is_archived:
        return
    name, frames = "", []
    if head.size:
        with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as file:
            offset = 0
            for data, covers in pack(_rows(head)):
                file.write(data)
                frames.append(Frame(offset=offset, size=len(data), covers=covers))
                offset += len(data)
            file.seek(0)
            name = default_storage.save(f"logs/{job_id[:8]}/{job_id}.log.z", File(file))
    with transaction.atomic():
        done = LogCursor.objects.filter(pk=job_id, archived_at=None, position=head.size).update(
            archived_at=Now(), archive=name, frames=write_index(frames)
        )
    if not done and name:
        default_storage.delete(name)  # it has grown, or another worker was quicker


def _rows(head: read.Head) -> Iterator[Row]:
    """Yield the log's rows as they are stored, without the sentences over holes."""
    offset = 0
    while offset < head.size:
        rows = read.stored(head, offset, STEP_BYTES)
        fresh = [row for row in rows if row.position >= offset]
        if not fresh:
            return
        yield from fresh
        offset = fresh[-1].position + len(fresh[-1].data)


def _finished() -> list[str]:
    """Return logs to which nothing can come any more: the agent has said so, or its token ended."""
    newest = Attempt.objects.filter(job=OuterRef("pk"), number=OuterRef("job__attempt"))
    said = newest.filter(exit__isnull=False).exclude(exit__error=NO_AGENT)
    over = LogCursor.objects.filter(archived_at=None, job__phase__in=[str(p) for p in FINAL])
    old = Q(job__ended_at__lt=Now() - TOKEN_OUTLIVES)
    return list(over.filter(old | Exists(said)).values_list("pk", flat=True)[:A_PASS])


def _forget() -> None:
    """Delete the objects of old logs, and what schedulers keep of those jobs."""
    cutoff = Now() - timedelta(days=settings.LOG_DAYS)
    old = LogCursor.objects.select_related("job__cluster").filter(
        archived_at__lt=cutoff, forgotten_at=None
    )
    for cursor in old[:A_PASS]:
        try:
            _forget_job(cursor.job)
        except OutsideError as error:
            log.warning("job not forgotten", extra={"job": cursor.pk, "error": error.message})
            continue
        if cursor.archive:
            default_storage.delete(cursor.archive)
        gone = LogCursor.objects.filter(pk=cursor.pk)
        gone.update(archive="", frames=None, forgotten_at=Now())


def _forget_job(job: Job) -> None:
    scheduler = connect.scheduler_of(job.cluster)
    if isinstance(scheduler, Forgets):
        for number in range(1, job.attempt + 1):
            scheduler.forget(key_of(job.pk, attempt=number))
