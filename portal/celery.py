"""The Celery application: queues, and the only schedule there is.

A message is a knock on the door. Every sweep is idempotent, so a lost or doubled one is harmless.
"""

import os

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")  # noqa: TID251 - Django's own

app = Celery("slipway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_schedule = {
    name: {
        "task": name,
        "schedule": seconds,
        "options": {"expires": seconds * 2},
    }
    for name, seconds in {
        "portal.tick": settings.SWEEP_SECONDS,
        "teams.seal_audit": settings.SWEEP_SECONDS,
        "teams.expire": 300.0,
        "notices.deliver": settings.SWEEP_SECONDS,
        "notices.prune": 3600.0,
        "jobs.sweep": min(2, settings.SWEEP_SECONDS),
        "jobs.stream.keep_logs": 60.0,
        "clusters.stream.roll_up": 60.0,
    }.items()
}


@app.task(name="portal.tick", ignore_result=True, queue="reconcile")
def tick() -> None:
    """Leave a trace of beat for /readyz."""
    from portal import health

    health.tick()


@app.task(name="portal.echo", ignore_result=True, queue="reconcile")
def echo(nonce: str) -> None:
    """Answer /readyz: the queue took the message and a worker ran it."""
    from portal import health

    health.answer(nonce)
