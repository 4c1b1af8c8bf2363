"""Makes the cluster of this machine; used by the supervisor, never in production."""

from typing import Any

from django.core.management.base import BaseCommand

from clusters import services


class Command(BaseCommand):
    """Idempotent; prints the cluster's slug."""

    help = "Make the local cluster, on which jobs run on this machine."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        self.stdout.write(services.ensure_local().slug)
