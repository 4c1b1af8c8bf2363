"""Money, rates and spans of time (pure).

Money is `Decimal` with up to 12 places, time on a machine is whole microseconds. Nothing here is
ever a float.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

PLACES: Final = Decimal("1e-12")
MOST: Final = Decimal("1e12")
HOUR_US: Final = 3_600_000_000
SECOND_US: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LeaseState(StrEnum):
    """Reserved: held, no clock runs. Open: since an instant, until another. Closed: settled."""

    RESERVED = "reserved"
    OPEN = "open"
    CLOSED = "closed"


class PeriodKind(StrEnum):
    """How long a budget's period is; its edges are in the team's time zone."""

    MONTH = "month"
    QUARTER = "quarter"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """What a cluster's resources cost an hour; absent items of a present card are zero."""

    currency: str
    node_hour: Decimal = Decimal(0)
    gpu_hour: Mapping[str, Decimal] = field(default_factory=dict)
    """By type; `*` is any other."""
    cpu_hour: Decimal = Decimal(0)
    memory_gib_hour: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """What a job asks for; counts are per node."""

    nodes: int = 1
    gpus_per_node: int = 0
    gpu_type: str = ""
    cpus_per_node: int = 0
    memory_bytes_per_node: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What an hour of a lease costs; frozen when the lease is made."""

    per_hour: Decimal
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of a lease's own running time, in microseconds since its first start."""

    begin_us: int
    end_us: int

    def until(self, settled_us: int) -> "Span":
        """Return what is left of the span after that place; empty spans begin where they end."""
        return Span(begin_us=min(max(self.begin_us, settled_us), self.end_us), end_us=self.end_us)

    @property
    def is_empty(self) -> bool:
        """Tell whether it holds no time."""
        return self.begin_us >= self.end_us


def micros(span: timedelta) -> int:
    """Return a span of time in whole microseconds."""
    return span.days * 86_400 * SECOND_US + span.seconds * SECOND_US + span.microseconds


def instant_us(instant: datetime) -> int:
    """Return an instant in whole microseconds since 1970."""
    return micros(instant - _EPOCH)
