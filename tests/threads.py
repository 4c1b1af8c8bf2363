"""Runs the same call several times at once, each with a database connection of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def in_threads(count: int, call: Callable[[int], T]) -> list[T]:
    """What `call(0)` to `call(count - 1)` return, all running at once."""

    def run(number: int) -> T:
        try:
            return call(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
