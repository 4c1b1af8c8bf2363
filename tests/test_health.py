"""`/healthz`, `/readyz` and `/metrics`."""

import threading
from contextlib import contextmanager

import pytest
from celery.contrib.testing.worker import start_worker
from django.core.cache import cache
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_text

from portal import health
from portal.celery import app, tick
from portal.notices import services as notices
from tests.people import api_client, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch):
    cache.clear()
    monkeypatch.setattr(health, "_last", None)
    monkeypatch.setattr(health, "ECHO_SECONDS", 0.05)


@contextmanager
def worker():
    """A real worker in a thread of the tests."""
    with start_worker(
        app, queues=["reconcile"], pool="solo", perform_ping_check=False, loglevel=50
    ):
        yield


def test_healthz_touches_nothing(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db(transaction=True)
def test_readyz_is_ready_when_a_worker_answers(client, redis, monkeypatch):
    """Over 300 ms: starts a worker."""
    monkeypatch.setattr(health, "ECHO_SECONDS", 10)
    health.tick()  # as beat lets a worker do
    with worker():
        answer = client.get("/readyz")
    assert answer.json() == {
        "status": "ready",
        "parts": dict.fromkeys(("database", "migrations", "redis", "queue", "sweeps"), "ok"),
    }
    assert answer.status_code == 200


def test_readyz_names_a_queue_that_nobody_serves(client, redis):
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["queue"] == "no answer"
    assert answer.json()["parts"]["database"] == "ok"


def test_readyz_names_a_store_that_is_away(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["redis"] == "ConnectionError"
    assert answer.json()["status"] == "not ready"


def test_readyz_says_when_beat_no_longer_sweeps(client, redis, monkeypatch):
    monkeypatch.setattr(health, "_started", health.time.monotonic() - 3600)
    assert "is beat running?" in client.get("/readyz").json()["parts"]["sweeps"]
    monkeypatch.setattr(health, "_last", None)
    tick.apply()
    assert client.get("/readyz").json()["parts"]["sweeps"] == "ok"


def test_many_who_ask_at_once_are_one_question(client, redis, monkeypatch):
    asked = []
    monkeypatch.setitem(health.CHECKS, "queue", lambda: asked.append(1) or "no answer")
    monkeypatch.setitem(health.CHECKS, "database", lambda: "ok")
    monkeypatch.setitem(health.CHECKS, "migrations", lambda: "ok")
    threads = [threading.Thread(target=client.get, args=("/readyz",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1


# Metrics ------------------------------------------------------------------------------------------


@pytest.fixture
def world(db):
    return make_world()


def samples(answer, parse=text_string_to_metric_families):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in parse(answer.content.decode())
        for sample in family.samples
    }


def test_metrics_are_openmetrics_with_what_an_operator_asks(world, redis):
    auditor = api_client(world.people["auditor"])
    route = notices.create_route(
        world.actor("manager"),
        team=world.team,
        kind="webhook",
        name="x",
        target="https://93.184.216.34/",
    ).row
    notices.test_route(world.actor("manager"), route)
    redis.rpush("slipway:notify", "a message")
    auditor.get("/api/v1/me")
    auditor.get("/nothing")
    answer = auditor.get("/metrics")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    found = samples(answer)
    assert found["slipway_http_requests_total", "200", "GET", "api-me"] >= 1
    assert found["slipway_http_requests_total", "404", "GET", "none"] >= 1
    assert found["slipway_http_request_duration_seconds_count", "GET", "api-me"] >= 1
    assert found["slipway_queue_depth", "notify"] == 1
    assert found["slipway_due_rows", "notices.delivery"] == 1
    assert 0 <= found["slipway_oldest_due_seconds", "notices.delivery"] < 60
    assert (found["slipway_ready", "database"], found["slipway_ready", "queue"]) == (1, 0)
    assert found["process_resident_memory_bytes",] > 0


def test_metrics_in_the_older_text_format(world, redis):
    auditor = api_client(world.people["auditor"])
    answer = auditor.get("/metrics", headers={"Accept": "text/plain"})
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert samples(answer, parse_text)["slipway_ready", "database"] == 1


def test_metrics_without_redis_say_so(world, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    found = samples(api_client(world.people["admin"]).get("/metrics"))
    assert found["slipway_ready", "redis"] == 0
    assert ("slipway_queue_depth", "notify") not in found


def test_a_made_up_path_or_method_makes_no_new_series(world, redis):
    admin = api_client(world.people["admin"])
    for number in range(3):
        admin.get(f"/made-up-{number}")
        admin.generic(f"MADE{number}", "/healthz")
    text = admin.get("/metrics").content.decode()
    assert "made-up" not in text
    assert "MADE" not in text
