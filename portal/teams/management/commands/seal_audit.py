"""Seals the audit log now, for backups."""

from typing import Any

from django.core.management.base import BaseCommand

from portal.teams import reconcile


class Command(BaseCommand):
    """Prints how many events were sealed."""

    help = "Seal every ripe event of the audit log."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        self.stdout.write(f"{reconcile.seal_audit()} events sealed")
