"""Turns: how many workers share rows without sharing one, and how a late one does no harm.

A pass takes a turn on one due row, works outside any transaction, and writes through `apply`,
which changes nothing once the turn is no longer ours. `due_at` is the only timer. All elapsed time
is PostgreSQL's.
"""

import logging
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from celery.exceptions import SoftTimeLimitExceeded
from django.db import models, transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Least, Now

log = logging.getLogger(__name__)

TURN_SECONDS: Final = 60
LONGEST_BACK_OFF: Final = timedelta(minutes=5)


class Turn(models.Model):
    """Columns of a row that passes work on; `due_at` is set by services, the rest here alone."""

    due_at = models.DateTimeField(
        null=True, blank=True, db_default=Now(), db_index=True, help_text="empty: nothing to do"
    )
    turn_token = models.UUIDField(null=True, blank=True, editable=False)
    turn_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    turn_failures = models.PositiveIntegerField(
        default=0, editable=False, help_text="passes that raised, since the last that did not"
    )

    class Meta:
        abstract = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A worker's claim on one row until it expires."""

    model: type[Turn]
    id: Any
    token: uuid.UUID
    failures: int


def make_due(queryset: QuerySet[Any]) -> None:
    """Make the rows due now; for services, in their own transaction, beside the wake-up.

    A worker that has the turn meanwhile gives the row back as due.
    """
    queryset.update(due_at=Now())


def take_turn(queryset: QuerySet[Any], *, seconds: int = TURN_SECONDS) -> Taken | None:
    """Take the turn on the row that has been due longest, in a short transaction of its own.

    Returns `None` when no row is due and free. Rows that another worker is taking are skipped.
    """
    return _take(queryset.filter(due_at__lte=Now()), seconds=seconds)


def take_turn_on(
    queryset: QuerySet[Any], row_id: Any, *, seconds: int = TURN_SECONDS
) -> Taken | None:
    """Take the turn on this row, due or not; `None` when another worker has it or it is gone."""
    return _take(queryset.filter(pk=row_id), seconds=seconds)


def apply(taken: Taken, **columns: Any) -> bool:
    """Write the columns if the turn is still ours, and tell whether it was.

    False means that another worker took over: drop everything. May be called inside a transaction,
    so that events stand or fall with it.
    """
    return bool(_still_ours(taken).update(**columns))


def give_back(taken: Taken, *, due_in: timedelta | None) -> bool:
    """End the turn; the row is due again after `due_in`, or never by itself if that is `None`.

    A row that a service made due during the turn stays due. Returns whether the turn was ours.
    """
    return apply(taken, **_ended(due_in), turn_failures=0)


def back_off(taken: Taken) -> bool:
    """End a turn whose pass failed: due again after seconds, then up to 5 minutes, with jitter."""
    seconds = min(LONGEST_BACK_OFF.total_seconds(), 2.0 ** min(taken.failures + 1, 16))
    delay = timedelta(seconds=seconds * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
    return apply(taken, **_ended(delay), turn_failures=F("turn_failures") + 1)


def run_passes(
    queryset: QuerySet[Any],
    work: Callable[[Taken], timedelta | None],
    *,
    limit: int,
    seconds: int = TURN_SECONDS,
) -> int:
    """Take up to `limit` turns one after the other and do the work of each; returns how many.

    `work` returns after how long the row is due again (`None`: never by itself) and the turn is
    given back. A pass that raises is logged with its traceback and backed off; the next goes on.
    """
    for done in range(limit):
        taken = take_turn(queryset, seconds=seconds)
        if taken is None:
            return done
        try:
            due_in = work(taken)
        except SoftTimeLimitExceeded:
            back_off(taken)
            raise
        except Exception:
            log.exception(
                "pass failed", extra={"table": taken.model._meta.db_table, "row": str(taken.id)}
            )
            back_off(taken)
        else:
            give_back(taken, due_in=due_in)
    return limit


def _take(queryset: QuerySet[Any], *, seconds: int) -> Taken | None:
    free = Q(turn_expires_at=None) | Q(turn_expires_at__lte=Now())
    with transaction.atomic(durable=True):
        row = (
            queryset.filter(free)
            .select_related(None)
            .order_by("due_at", "pk")
            .select_for_update(skip_locked=True, no_key=True, of=("self",))
            .only("pk", "turn_failures")
            .first()
        )
        if row is None:
            return None
        taken = Taken(model=type(row), id=row.pk, token=uuid.uuid4(), failures=row.turn_failures)
        expires_at = Now() + timedelta(seconds=seconds)
        # due_at moves to the expiry: an abandoned row comes due by itself, and _ended() can tell
        # whether a service has touched it during the turn.
        type(row)._base_manager.filter(pk=row.pk).update(
            turn_token=taken.token, turn_expires_at=expires_at, due_at=expires_at
        )
        return taken


def _still_ours(taken: Taken) -> QuerySet[Any]:
    return taken.model._base_manager.filter(
        pk=taken.id, turn_token=taken.token, turn_expires_at__gt=Now()
    )


def _ended(due_in: timedelta | None) -> dict[str, Any]:
    field = models.DateTimeField(null=True)
    due_at = Value(None, output_field=field) if due_in is None else Now() + due_in
    untouched = Q(due_at=F("turn_expires_at"))
    return {
        "turn_token": None,
        "turn_expires_at": None,
        "due_at": Case(
            When(untouched, then=due_at),
            default=Least(F("due_at"), due_at),  # PostgreSQL's LEAST ignores NULL
            output_field=field,
        ),
    }
