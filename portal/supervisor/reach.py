"""Connects once to the given PostgreSQL and Redis; run by the supervisor inside `.venv`.

Ends with status 1 and one sentence on standard error when one of them cannot be used.
"""

import sys
from urllib.parse import urlsplit

import psycopg
import redis

from portal import env as environment

TIMEOUT_SECONDS = 5
LEAST_POSTGRES = 150000


def masked(url: str) -> str:
    """Give an address without its password."""
    parts = urlsplit(url)
    shown = parts._replace(query="")
    if parts.password:
        shown = shown._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":…@"))
    return shown.geturl()


def database_problem(url: str) -> str | None:
    """Say in one sentence why this PostgreSQL cannot be used, or nothing."""
    try:
        with psycopg.connect(url, connect_timeout=TIMEOUT_SECONDS) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        return (
            f"DATABASE_URL={masked(url)} cannot be reached: {_reason(error)}; correct the address, "
            "user, password and database name, or unset it for the embedded PostgreSQL"
        )
    if version < LEAST_POSTGRES:
        return f"DATABASE_URL={masked(url)} is PostgreSQL {version // 10000}; 15 or newer is needed"
    return None


def redis_problem(url: str) -> str | None:
    """Say in one sentence why this Redis cannot be used, or nothing."""
    try:
        redis.from_url(url, socket_connect_timeout=TIMEOUT_SECONDS).ping()
    except (redis.RedisError, OSError, ValueError) as error:
        return (
            f"REDIS_URL={masked(url)} cannot be reached: {_reason(error)}; correct the address and "
            "password, or unset it for the embedded Valkey"
        )
    return None


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def main() -> int:
    """Check both and say what is wrong with the first that fails."""
    env = environment.load(need_keys=False)
    problem = database_problem(env.database_url) or redis_problem(env.redis_url)
    if problem:
        sys.stderr.write(f"{problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
