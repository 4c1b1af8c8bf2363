"""Makes what every site has; used by the supervisor and by compose's setup."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from clusters import services as clusters
from jobs.services import builtin


class Command(BaseCommand):
    """Idempotent; prints the built-in definitions that were made or changed."""

    help = "Make the built-in definitions and, with --local, the cluster of this machine."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--local", action="store_true", help="jobs may run on this machine; never in production"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        for slug in builtin.ensure_definitions():
            self.stdout.write(slug)
        if options["local"]:
            clusters.ensure_local()
