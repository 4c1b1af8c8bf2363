"""Encrypt every stored secret with the first key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core import crypto

BATCH = 500


class Command(BaseCommand):
    """Re-encrypts registered columns; may be stopped and repeated at any time."""

    help = (
        "Encrypts every stored secret with the first of SLIPWAY_ENCRYPTION_KEYS. Afterwards the "
        "other keys may be removed from it."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Walk all columns and say how many values changed."""
        failed = 0
        for column in crypto.columns:
            changed, unread = _rotate(column)
            failed += unread
            self.stdout.write(f"{column.model._meta.db_table}.{column.name}: {changed} changed")
        if failed:
            raise CommandError(
                f"{failed} values could not be read and were left as they are; keep the old keys."
            )


def _rotate(column: crypto.Column) -> tuple[int, int]:
    rows = column.model._base_manager.exclude(**{column.name: None}).order_by("pk")
    changed = unread = 0
    for row_id, stored in rows.values_list("pk", column.name).iterator(chunk_size=BATCH):
        if not bytes(stored) or not crypto.needs_rotation(stored):
            continue
        try:
            fresh = crypto.rotate(stored, context=column.context_of(row_id))
        except crypto.CannotDecrypt:
            unread += 1
            continue
        # Only over what was read: a value that was set meanwhile stays.
        unchanged = column.model._base_manager.filter(pk=row_id, **{column.name: stored})
        changed += unchanged.update(**{column.name: fresh})
    return changed, unread
