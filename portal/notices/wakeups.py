"""Knocks on the doors of notices."""

from portal.core.wakeups import wake


def deliver() -> None:
    """Say that deliveries are due, once the transaction has committed."""
    wake("notices.deliver")
