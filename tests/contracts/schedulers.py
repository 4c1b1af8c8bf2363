"""What the contract suite needs of each scheduler: one anew, one that is away, time that passes."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from clusters.schedulers.contract import Resources, Scheduler, Seen, Stage, SubmitRequest
from clusters.schedulers.local.adapter import LocalScheduler
from clusters.schedulers.local.machine import Machine
from tests.doubles.scheduler import SchedulerDouble

PATIENCE_SECONDS = 30
MACHINE = Machine(cpus=4, memory_bytes=1 << 34)
_numbers = count(1)


@dataclass
class Bench:
    """One scheduler under test; `again()` is another instance over the same jobs."""

    scheduler: Scheduler
    again: Callable[[], Scheduler]
    take_away: Callable[[], None]
    pass_time: Callable[[float], None] = lambda _seconds: None
    too_large: Resources = field(default_factory=lambda: Resources(nodes=1000))

    def request(self, script: str, **changes: Any) -> SubmitRequest:
        key = changes.pop("key", f"01JTEST{next(_numbers):06d}-1")
        values = {"name": "test", "owner": "", "time_limit_seconds": 60, **changes}
        return SubmitRequest(key=key, script=script, **values)

    def submit(self, script: str, **changes: Any) -> str:
        request = self.request(script, **changes)
        self.scheduler.submit(request)
        return request.key

    def until(self, key: str, is_so: Callable[[Seen], bool]) -> Seen:
        """Look until it is so, or fail after a while."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            seen = self.scheduler.observe([key])[key]
            if is_so(seen):
                return seen
            self.pass_time(0.01)
        raise AssertionError(f"{key} is still {seen}")

    def ended(self, key: str) -> Seen:
        return self.until(key, lambda seen: seen.stage is Stage.ENDED)

    def running(self, key: str) -> Seen:
        return self.until(key, lambda seen: seen.stage is Stage.RUNNING)


def way_for_all(folder: Path) -> Path:
    """Let other users come to a folder of the tests, which pytest closes on its way."""
    for path in (folder, *folder.parents):
        if path.owner() == folder.owner() and not path.stat().st_mode & 0o001:
            path.chmod(0o711)
    return folder


def of_double(_folder: Path) -> Bench:
    double = SchedulerDouble()

    def again() -> SchedulerDouble:
        other = SchedulerDouble(double.jobs)
        other.now = double.now
        return other

    def take_away() -> None:
        double.is_away = True

    def pass_time(_seconds: float) -> None:
        double.pass_time(seconds=1)

    return Bench(double, again, take_away, pass_time)


def of_local(folder: Path, **changes: Any) -> Bench:
    jobs = folder / "jobs"

    def make() -> LocalScheduler:
        return LocalScheduler(folder=jobs, **{"wall": False, "machine": MACHINE, **changes})

    def take_away() -> None:
        jobs.rename(folder / "elsewhere")
        jobs.write_text("not a folder")

    def pass_time(seconds: float) -> None:
        os.sched_yield()

    return Bench(make(), make, take_away, pass_time, too_large=Resources(gpus_per_node=99))
