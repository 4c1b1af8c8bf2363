"""Values of jobs that cross rooms (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a team's jobs occupy now, and the GPU-hours of the month in the team's zone."""

    gpus: int = 0
    nodes: int = 0
    running_jobs: int = 0
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    gpu_hours_per_month: Decimal = Decimal(0)
