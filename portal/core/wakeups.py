"""Knocks on a worker's door: a task's name and ids, after the commit, never in a request's way.

A room's own `wakeups.py` gives each knock a verb; nobody else calls `wake`. A knock may get lost.
"""

import os
from functools import lru_cache, partial
from typing import Final

from celery import Celery
from django.db import transaction

from portal.core.outbox import Outbox

MAX_ID: Final = 100


def wake(task_name: str, *ids: str) -> None:
    """Send the task's name and ids once the current transaction has committed.

    On rollback nothing is sent; outside a transaction it is sent at once. The same knock that
    still waits is sent once. Raises `TypeError` for anything but short ids.
    """
    if not all(type(given) is str and len(given) <= MAX_ID for given in ids):
        raise TypeError(f"{task_name}: a wake-up carries short ids and nothing else")
    transaction.on_commit(partial(outbox.put, (task_name, ids), None), robust=True)


def _send(knock: tuple[str, tuple[str, ...]], _value: None) -> None:
    name, ids = knock
    _producer(os.getpid()).send_task(name, args=ids, retry=False, ignore_result=True)


@lru_cache(maxsize=1)
def _producer(_pid: int) -> Celery:
    """Return this process's producer; connections of the parent are never used after a fork."""
    app = Celery("slipway-producer", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.conf.update(
        task_serializer="json",
        broker_transport_options={
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
            **app.conf.broker_transport_options,
            "max_retries": 0,
        },
    )
    return app


outbox: Outbox[tuple[str, tuple[str, ...]], None] = Outbox(
    "wakeups", send=_send, merge=lambda _old, _new: None
)
