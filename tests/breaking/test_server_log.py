"""What the embedded PostgreSQL writes to the log when it refuses a statement."""

import pytest
from django.db import connection


def setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return cursor.fetchone()[0]


def test_a_refused_statement_is_logged_without_its_values(db) -> None:
    """They are what people typed, and digests of passwords and links."""
    if setting("listen_addresses"):
        pytest.skip("DATABASE_URL names another PostgreSQL than the embedded one")
    assert setting("log_min_error_statement") == "panic"
    assert setting("log_error_verbosity") == "terse"
