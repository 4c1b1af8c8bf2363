"""A Redis that hangs: it takes connections and never says a word."""

import socket
import time
from collections.abc import Iterator

import pytest
from django.core.cache import cache

from portal import health
from portal.core.cache import SoftRedisCache
from tests.people import browser, make_user

pytestmark = pytest.mark.django_db
TIME_OUT_SECONDS = 0.25


@pytest.fixture
def hung_redis(settings, monkeypatch) -> Iterator[None]:
    """Over 300 ms: each test waits for a time-out or two."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.REDIS_URL = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        settings.CACHES = {
            "default": {**settings.CACHES["default"], "LOCATION": settings.REDIS_URL}
        }
        monkeypatch.setattr(health, "_last", None)
        yield
    SoftRedisCache.asked_again_at = 0.0


def test_a_request_waits_for_it_once_and_not_at_every_look_up(hung_redis) -> None:
    begun = time.monotonic()
    assert [cache.get("a", "default") for _ in range(20)] == ["default"] * 20
    assert time.monotonic() - begun < 3 * TIME_OUT_SECONDS


def test_it_is_asked_again_when_it_is_back(redis) -> None:
    SoftRedisCache.asked_again_at = time.monotonic() + 0.2
    assert cache.get_or_set("a", "b") == "b"
    deadline = time.monotonic() + 10
    while cache.get("a") is None and time.monotonic() < deadline:
        cache.set("a", "b")
    assert cache.get("a") == "b"


def test_signing_in_does_not_hang(hung_redis) -> None:
    make_user("ada", password="correct-horse-battery")
    begun = time.monotonic()
    answer = browser(None).post(
        "/account/login/", {"login": "ada@example.org", "password": "correct-horse-battery"}
    )
    assert answer.status_code == 302
    assert time.monotonic() - begun < 2.0


def test_readyz_says_so_in_little_more_than_a_second(hung_redis) -> None:
    begun = time.monotonic()
    answer = browser(None).get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["queue"] == "redis is away"
    assert time.monotonic() - begun < health.PING_SECONDS + 1
