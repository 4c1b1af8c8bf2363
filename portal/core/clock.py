"""The one clock of the portal's own processes.

Elapsed time inside the portal is PostgreSQL's `now()`; this clock is for instants that people read.
"""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current instant in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one place that reads the wall clock
