"""Identifiers: ULIDs, 26 characters, sortable by the millisecond in which they were made."""

from ulid import ULID

LENGTH = 26


def new() -> str:
    """Return a fresh ULID in Crockford's base 32."""
    return str(ULID())
