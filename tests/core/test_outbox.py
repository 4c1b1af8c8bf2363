"""Wake-ups and hints: after the commit, never in a request's way, whatever Redis does."""

import asyncio
import json
import logging
import os
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from channels.layers import get_channel_layer
from django.db import transaction

from portal.core import push, wakeups
from portal.core.outbox import Outbox

QUEUE = "slipway:reconcile"


class Gate:
    """The other end of an outbox, which can be closed, and keeps what arrives."""

    def __init__(self, *, capacity=100):
        self.arrived, self.broken = [], False
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.outbox = Outbox("gate", send=self._send, merge=max, capacity=capacity)

    def _send(self, key, value):
        self.entered.set()
        self.open.wait(10)
        if self.broken:
            raise ConnectionError("broker is away")
        self.arrived.append((key, value))

    def close(self):
        """Close the gate and put one message into it, so that everything after it waits."""
        self.open.clear()
        self.entered.clear()
        self.outbox.put("first", 0)
        assert self.entered.wait(5)


def test_messages_keep_their_order_and_twins_are_merged():
    gate = Gate()
    gate.close()
    for key, value in (("a", 1), ("b", 5), ("a", 3), ("b", 2), ("a", 2)):
        gate.outbox.put(key, value)
    gate.open.set()
    assert gate.outbox.drain(timeout=5)
    assert gate.arrived == [("first", 0), ("a", 3), ("b", 5)]


def test_a_full_outbox_drops_and_says_how_many(caplog):
    gate = Gate(capacity=3)
    gate.close()
    began = time.monotonic()
    for number in range(1000):
        gate.outbox.put(number, number)
    assert time.monotonic() - began < 1
    with caplog.at_level(logging.WARNING):
        gate.open.set()
        assert gate.outbox.drain(timeout=5)
    assert [key for key, _ in gate.arrived] == ["first", 0, 1, 2]
    assert {r.dropped for r in caplog.records if hasattr(r, "dropped")} == {997}


def test_a_dead_end_is_logged_once_and_survived(caplog):
    gate = Gate()
    gate.broken = True
    with caplog.at_level(logging.WARNING):
        for number in range(20):
            gate.outbox.put(number, number)
        assert gate.outbox.drain(timeout=5)
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        gate.broken = False
        gate.outbox.put("after", 1)
        assert gate.outbox.drain(timeout=5)
    assert gate.arrived == [("after", 1)]
    assert "sends again" in caplog.text


def test_a_fork_starts_empty_and_sends_its_own():
    gate = Gate()
    gate.close()
    gate.outbox.put("of the parent", 1)
    read, write = os.pipe()
    child = os.fork()
    if not child:  # only what is safe after a fork
        gate.open.set()
        gate.outbox.put("of the child", 2)
        gate.outbox.drain(timeout=5)
        os.write(write, json.dumps([key for key, _ in gate.arrived]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(os.read(read, 1000)) == ["of the child"]
    gate.open.set()
    assert gate.outbox.drain(timeout=5)
    assert [key for key, _ in gate.arrived] == ["first", "of the parent"]
    os.close(read)
    os.close(write)


# Wake-ups -----------------------------------------------------------------------------------


@pytest.fixture
def _fresh_producer():
    wakeups._producer.cache_clear()
    wakeups.outbox._is_failing = False
    yield
    wakeups.outbox.drain(timeout=10)
    wakeups._producer.cache_clear()


def knocks(redis, queue=QUEUE) -> list[tuple[str, list]]:
    assert wakeups.outbox.drain(timeout=10)
    found = []
    for raw in reversed(redis.lrange(queue, 0, -1)):
        message = json.loads(raw)
        headers = message["headers"]
        assert message["content-type"] == "application/json"
        found.append((headers["task"], headers["argsrepr"]))
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_fresh_producer")
def test_a_knock_is_sent_after_the_commit_and_never_before(redis):
    with transaction.atomic():
        wakeups.wake("jobs.reconcile", "01J")
        assert knocks(redis) == []
    assert knocks(redis) == [("jobs.reconcile", "('01J',)")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_fresh_producer")
def test_a_rollback_sends_nothing(redis):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        wakeups.wake("jobs.reconcile", "01J")
        1 / 0  # noqa: B018
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            wakeups.wake("jobs.reconcile", "inner")
            1 / 0  # noqa: B018
        wakeups.wake("jobs.reconcile", "outer")
    assert knocks(redis) == [("jobs.reconcile", "('outer',)")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_fresh_producer")
def test_outside_a_transaction_it_is_sent_at_once_to_the_queue_of_its_route(redis):
    wakeups.wake("notices.deliver")
    assert knocks(redis, "slipway:notify") == [("notices.deliver", "()")]


@pytest.mark.parametrize("wrong", [7, {"id": 1}, b"01J", None, "x" * 200])
def test_a_knock_carries_ids_only(wrong):
    with pytest.raises(TypeError):
        wakeups.wake("jobs.reconcile", wrong)


@contextmanager
def black_hole():
    """A broker that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


@contextmanager
def dead_broker():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    yield f"redis://127.0.0.1:{port}/0"


def assert_nobody_waited(delays: list[float]) -> None:
    """50 ms is promised; the last few of a hundred belong to a busy machine, not to the broker."""
    assert sorted(delays)[len(delays) * 97 // 100] < 0.05
    assert max(delays) < 0.29


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_fresh_producer")
@pytest.mark.parametrize("broker", [dead_broker, black_hole])
def test_a_broker_that_is_away_delays_nobody(broker, settings, caplog):
    """Takes seconds: the sender's own time-outs, which the caller does not wait for."""
    with broker() as url, caplog.at_level(logging.WARNING):
        settings.CELERY_BROKER_URL = url
        settings.CELERY_BROKER_TRANSPORT_OPTIONS = {
            **settings.CELERY_BROKER_TRANSPORT_OPTIONS,
            "socket_timeout": 0.3,
            "socket_connect_timeout": 0.3,
        }
        delays = []
        for number in range(200):
            began = time.monotonic()
            with transaction.atomic():
                wakeups.wake("jobs.reconcile", f"01J{number % 3}")
            delays.append(time.monotonic() - began)
        assert_nobody_waited(delays)
        assert wakeups.outbox.drain(timeout=20)
    assert "wakeups cannot send" in caplog.text


# Hints --------------------------------------------------------------------------------------


async def hints_of(group: str, act, *, count: int) -> list[dict]:
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(group, channel)
    await asyncio.to_thread(act)
    got = [await asyncio.wait_for(layer.receive(channel), 5) for _ in range(count)]
    await layer.group_discard(group, channel)
    return got


@pytest.mark.django_db(transaction=True)
def test_hints_arrive_after_the_commit_with_the_largest_number():
    def act():
        with transaction.atomic():
            for upto in (3, 412, 7):
                push.hint("job.01J", upto=upto, kind="log")
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            push.hint("job.01J", upto=9999)
            1 / 0  # noqa: B018
        push.hint("job.01J", upto=500)
        from django.db import connection

        connection.close()

    async def main():
        return await hints_of("job.01J", act, count=2)

    got = asyncio.run(main())
    assert got[0]["type"] == "hint"
    assert got[-1] == {"type": "hint", "upto": 500}
    assert {"type": "hint", "upto": 9999} not in got


def test_waiting_hints_are_merged_by_group_and_texts():
    assert push._merge({"upto": 5, "a": 1}, {"upto": 3, "b": 2}) == {"upto": 5, "a": 1, "b": 2}


@pytest.mark.parametrize(
    "wrong", [{"line": "x" * 65}, {"data": {"a": 1}}, {"flag": True}, {"at": 1.5}, {"type": "x"}]
)
def test_a_hint_carries_numbers_and_short_texts_only(wrong):
    with pytest.raises(TypeError):
        push.hint("job.01J", **wrong)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("broker", [dead_broker, black_hole])
def test_a_channel_layer_that_is_away_delays_nobody(broker, settings):
    """Takes seconds: the sender's own time-out, which the caller does not wait for."""
    with broker() as url:
        layers = {"default": {**settings.CHANNEL_LAYERS["default"], "CONFIG": {"hosts": [url]}}}
        settings.CHANNEL_LAYERS = layers
        delays = []
        for number in range(100):
            began = time.monotonic()
            push.hint("team.01J", event=number)
            delays.append(time.monotonic() - began)
        assert_nobody_waited(delays)
        assert push.outbox.drain(timeout=20)
