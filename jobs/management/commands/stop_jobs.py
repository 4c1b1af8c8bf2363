"""Stops all jobs of this machine and waits for their ends; used by `up --stop-jobs`."""

import threading
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from jobs import selectors
from jobs.services import jobs

LONGEST_SECONDS: Final = 90
POLL_SECONDS: Final = 0.5


class Command(BaseCommand):
    """Asks as the operator does: checkpoint signal, grace, then the end."""

    help = "Stop all jobs of this machine and wait for their ends."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        waited = 0.0
        while live := list(selectors.unfinished_local()):
            for job in live:
                jobs.stop_by_operator(job)
            if waited >= LONGEST_SECONDS:
                raise CommandError(f"{len(live)} jobs have not ended yet.")
            threading.Event().wait(POLL_SECONDS)
            waited += POLL_SECONDS
