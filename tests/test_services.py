"""The services of the tests themselves."""

import os

from django.conf import settings
from django.db import connection


def test_each_worker_has_databases_of_its_own(db):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    number = 0 if worker is None else int(worker.removeprefix("gw")) + 1
    assert os.environ["REDIS_URL"] == settings.REDIS_URL
    assert f"db={number}" in settings.REDIS_URL or settings.REDIS_URL.endswith(f"/{number}")
    assert connection.settings_dict["NAME"].endswith(f"_{worker}" if worker else "")
