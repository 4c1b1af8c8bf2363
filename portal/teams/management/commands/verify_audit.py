"""Proves that the audit log is what was sealed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.teams import reconcile
from portal.teams.models import AuditSeal


class Command(BaseCommand):
    """Prints every fault and fails, or prints the length and the head of the chain."""

    help = "Verify the audit log; note the printed head to find a cut end later with --head."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--head", metavar="HASH", help="a head that was noted earlier")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        faults = list(reconcile.verify_audit(head=options["head"]))
        for fault in faults:
            self.stderr.write(f"seal {fault.position} event {fault.event_id or '–'}: {fault.what}")
        if faults:
            raise CommandError(f"The audit log has {len(faults)} faults.")
        last = AuditSeal.objects.order_by("-position").first()
        count, head = (last.position, last.hash) if last else (0, reconcile.GENESIS)
        self.stdout.write(f"{count} seals, no fault. Head: {head}")
