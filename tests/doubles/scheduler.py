"""A scheduler in memory that reads scripts of a few words; no kinder than the real ones.

It knows `exit N`, `kill -N $$`, `sleep N` (until cancelled, or until the test moves its clock) and
`trap '' TERM` (then only KILL ends it). Everything else is done at once with 0.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from clusters.schedulers.contract import Ending, Seen, Signal, Stage, SubmitRequest
from portal.core.errors import Rejected, Unavailable

NUMBERS = {Signal.INT: 2, Signal.KILL: 9, Signal.USR1: 10, Signal.USR2: 12, Signal.TERM: 15}


@dataclass
class _Job:
    request: SubmitRequest
    seen: Seen
    ends_at: datetime | None = None


class SchedulerDouble:
    """`jobs` outlives an instance when it is given, as a real system would."""

    def __init__(self, jobs: dict[str, _Job] | None = None) -> None:
        self.jobs = {} if jobs is None else jobs
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.is_away = False
        self.submitted: list[str] = []

    def submit(self, request: SubmitRequest) -> str:
        self._reach()
        if request.resources.nodes > 100:
            raise Rejected("never_fits", "It asks for more than 100 nodes; 100 fit.")
        if request.key not in self.jobs:
            self.submitted.append(request.key)
            seen = Seen(external_id=f"ext-{request.key}", stage=Stage.PENDING)
            self.jobs[request.key] = _Job(request, seen)
        return self.jobs[request.key].seen.external_id

    def observe(self, keys: Collection[str]) -> Mapping[str, Seen]:
        self._reach()
        for key in keys:
            if key in self.jobs:
                self._move(self.jobs[key])
        return {key: self.jobs[key].seen for key in keys if key in self.jobs}

    def cancel(self, key: str, signal: Signal | None = None) -> None:
        self._reach()
        job = self.jobs.get(key)
        if job is None or job.seen.stage is Stage.ENDED:
            return
        if signal is None:
            self._end(job, Ending.CANCELLED, signal=15)
        elif job.seen.stage is Stage.RUNNING:
            if "trap '' TERM" in job.request.script and signal is not Signal.KILL:
                return
            self._end(job, Ending.EXIT_CODE, signal=NUMBERS[signal])

    def pass_time(self, **span: float) -> None:
        self.now += timedelta(**span)

    def _reach(self) -> None:
        if self.is_away:
            raise Unavailable("away", "The scheduler does not answer.")

    def _move(self, job: _Job) -> None:
        if job.seen.stage is Stage.PENDING:
            job.seen = replace(
                job.seen, stage=Stage.RUNNING, started_at=self.now, nodes=("double",)
            )
            slept = re.search(r"sleep (\d+)", job.request.script)
            job.ends_at = self.now + timedelta(seconds=int(slept[1]) if slept else 0)
            return
        if job.seen.stage is not Stage.RUNNING or job.seen.started_at is None:
            return
        limit = job.seen.started_at + timedelta(seconds=job.request.time_limit_seconds)
        if job.ends_at is not None and self.now >= job.ends_at:
            killed = re.search(r"kill -(\d+) \$\$", job.request.script)
            code = re.search(r"exit (\d+)", job.request.script)
            if killed:
                self._end(job, Ending.EXIT_CODE, signal=int(killed[1]))
            else:
                number = int(code[1]) if code else 0
                self._end(job, Ending.EXIT_CODE if number else Ending.COMPLETED, code=number)
        elif self.now >= limit:
            self._end(job, Ending.TIME_LIMIT, signal=15)

    def _end(
        self, job: _Job, ending: Ending, *, code: int | None = None, signal: int | None = None
    ) -> None:
        job.seen = replace(
            job.seen,
            stage=Stage.ENDED,
            ending=ending,
            exit_code=code,
            signal=signal,
            ended_at=self.now,
        )
