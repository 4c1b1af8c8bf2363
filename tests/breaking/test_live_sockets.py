"""People who go away while a job's log is sent to them."""

import logging
from socket import SHUT_RDWR

import pytest
from websockets.sync.client import connect

from tests.doubles.server import running
from tests.jobs.makers import OUT, chunk, make_job, post
from tests.people import make_world, token_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
TIMES = 10


def test_who_goes_away_in_the_middle_is_no_failure(caplog) -> None:
    world = make_world()
    job, token = make_job(world)
    for part in range(20):
        post(token, chunk(OUT, part << 18, b"x" * (1 << 18)))
    who = token_of(world.people["viewer"])
    caplog.set_level(logging.WARNING, logger="jobs.consumers")
    with running() as url:
        address = f"{url.replace('http', 'ws')}/ws/v1/jobs/{job.pk}/logs"
        for _time in range(TIMES):
            with connect(address, subprotocols=["bearer", who]) as opened:
                opened.recv(timeout=20)
                opened.socket.shutdown(SHUT_RDWR)
        with connect(address, subprotocols=["bearer", who]) as last:
            last.recv(timeout=20)
    assert [record.getMessage() for record in caplog.records] == []
