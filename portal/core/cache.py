"""A cache that is slower, never wrong: without Redis every look-up misses."""

import logging
import time
from collections.abc import Callable
from typing import Any, ClassVar

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)
AWAY_SECONDS = 1.0


def _soft(name: str, default: Any) -> Callable[..., Any]:
    """Give RedisCache's method of that name, which returns the default when Redis is away."""
    original = getattr(RedisCache, name)

    def call(self: "SoftRedisCache", *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= SoftRedisCache.asked_again_at:
            try:
                return original(self, *args, **kwargs)
            except (RedisError, OSError):
                log.warning("cache is away", extra={"operation": name})
                SoftRedisCache.asked_again_at = time.monotonic() + AWAY_SECONDS
        return args[1] if name == "get" and len(args) > 1 else kwargs.get("default", default)

    return call


class SoftRedisCache(RedisCache):
    """Django's Redis cache, whose failures read as misses and whose lost writes are dropped.

    Rate limits count here, so without Redis they do not limit; passwords stay slow to guess by
    Argon2 alone until it is back. A Redis that failed is left alone for a second, so that one which
    hangs costs a request one time-out and not one for each look-up.
    """

    asked_again_at: ClassVar[float] = 0.0

    get = _soft("get", None)
    get_many = _soft("get_many", {})
    has_key = _soft("has_key", False)  # noqa: FBT003 - the answer of a miss
    add = _soft("add", True)  # noqa: FBT003 - as if nobody else had it
    set = _soft("set", None)
    set_many = _soft("set_many", [])
    touch = _soft("touch", False)  # noqa: FBT003 - as if it had expired
    delete = _soft("delete", False)  # noqa: FBT003 - as if it had not been there
    delete_many = _soft("delete_many", None)
    incr = _soft("incr", 1)
    clear = _soft("clear", False)  # noqa: FBT003 - as if nothing was cleared
