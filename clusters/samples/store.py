"""Taking samples: many in one statement; what is there already stays as it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from clusters.samples.tables import AHEAD_SECONDS, OLDEST_SECONDS
from portal.core import clock

_INSERT = """
    INSERT INTO clusters_sample (subject, at, series) VALUES (%s, to_timestamp(%s), %s)
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Figures of a subject at one instant, in seconds since 1970 by its own clock."""

    subject: str
    at: float
    series: Mapping[str, float]


def take(samples: Sequence[Sample]) -> None:
    """Write samples in the caller's transaction; (subject, at) is written once.

    Passes over what is too old or too far ahead to be kept. Raises `IntegrityError` when a
    partition is missing: `tables.prepare` makes it.
    """
    now = clock.now().timestamp()
    rows = [
        (sample.subject, sample.at, json.dumps(dict(sample.series)))
        for sample in samples
        if sample.series and now - OLDEST_SECONDS < sample.at < now + AHEAD_SECONDS
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)
