"""What every test stands on: real PostgreSQL and Valkey, one database of each per worker.

The environment is written before Django reads it, so `pytest` must not load the settings earlier:
`DJANGO_SETTINGS_MODULE` is set here and not in pyproject.toml.
"""

import os
import re
from collections.abc import Iterator

import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
NUMBER = 0 if WORKER == "main" else int(WORKER.removeprefix("gw")) + 1


def _prepare_environment() -> None:
    if "DATABASE_URL" not in os.environ or "REDIS_URL" not in os.environ:
        from tests import services

        services.start()
    for name in [name for name in os.environ if name.startswith("SLIPWAY_")]:
        if not name.startswith("SLIPWAY_TEST_"):
            del os.environ[name]
    os.environ.update(
        DJANGO_SETTINGS_MODULE="portal.settings",
        SLIPWAY_SECRET_KEY="tests-only-" + "k" * 50,
        SLIPWAY_ENCRYPTION_KEYS="dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk",
        SLIPWAY_EMAIL_URL="memory://tests",
        SLIPWAY_LOG_FORMAT="json",
        REDIS_URL=_own_redis(os.environ["REDIS_URL"]),
    )


def _own_redis(url: str) -> str:
    """Give each worker its own database number; two workers share nothing but the server."""
    if url.startswith("unix:"):
        return re.sub(r"([?&]db=)\d+", rf"\g<1>{NUMBER}", url)
    return re.sub(r"(//[^/]+)(/\d*)?$", rf"\g<1>/{NUMBER}", url)


def _set_up_django() -> None:
    """Before any other conftest is imported, since those import models."""
    import django

    django.setup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Let a worker load the settings only after it has written its own environment.

    With this variable pytest-django loads them at once, and all workers would share one Valkey.
    """
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


_prepare_environment()
_set_up_django()


@pytest.fixture(autouse=True)
def _quick_passwords(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> None:
    """Let tests empty the insert-only tables: only the test database loses that trigger."""
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname, tgrelid::regclass::text FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgtype & 32 <> 0"  # 32: TRUNCATE
        )
        for trigger, table in cursor.fetchall():
            cursor.execute(f'ALTER TABLE {table} DISABLE TRIGGER "{trigger}"')


@pytest.fixture
def redis() -> Iterator:
    """A client of this worker's Valkey database, emptied before and after."""
    from django.conf import settings
    from redis import Redis

    with Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
        yield client
        client.flushdb()
