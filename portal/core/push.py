"""Hints to browsers: "there is more, up to 412", after the commit, never in a request's way.

A hint carries numbers and ids, never content: whoever listens reads the store. It may get lost.
"""

import asyncio
import threading
from functools import partial
from typing import Final

from channels.layers import get_channel_layer
from django.db import transaction

from portal.core.outbox import Outbox

MAX_TEXT: Final = 64
SEND_SECONDS: Final = 2.0

Texts = tuple[tuple[str, str], ...]
Numbers = dict[str, int]


def hint(group: str, **facts: int | str) -> None:
    """Send the facts to the group once the current transaction has committed.

    Consumers get `{"type": "hint", **facts}`. Hints of one group with the same texts are merged
    while they wait: each number becomes the larger one. Raises `TypeError` for anything but
    integers and texts of up to 64 characters.
    """
    texts: dict[str, str] = {}
    numbers: Numbers = {}
    for name, value in facts.items():
        if isinstance(value, str) and len(value) <= MAX_TEXT and name != "type":
            texts[name] = value
        elif isinstance(value, int) and not isinstance(value, bool) and name != "type":
            numbers[name] = value
        else:
            raise TypeError(f"a hint carries numbers and short texts only, not {name}")
    key = (group, tuple(sorted(texts.items())))
    transaction.on_commit(partial(outbox.put, key, numbers), robust=True)


def _merge(old: Numbers, new: Numbers) -> Numbers:
    return {name: max(old.get(name, value), value) for name, value in {**old, **new}.items()}


def _send(key: tuple[str, Texts], numbers: Numbers) -> None:
    group, texts = key
    message = {"type": "hint", **dict(texts), **numbers}
    layer = get_channel_layer()
    if layer is not None:
        _loop().run_until_complete(asyncio.wait_for(layer.group_send(group, message), SEND_SECONDS))


_of_thread = threading.local()


def _loop() -> asyncio.AbstractEventLoop:
    """Return the sender thread's own event loop, on which the layer keeps its connection."""
    if not hasattr(_of_thread, "loop"):
        _of_thread.loop = asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = _of_thread.loop
    return loop


outbox: Outbox[tuple[str, Texts], Numbers] = Outbox("hints", send=_send, merge=_merge)
