"""What leaves a request towards Redis: a bounded, de-duplicating queue and one thread per process.

A request only puts things here, which never blocks. What cannot be sent is dropped and logged: the
database holds the wish, and a sweep finds it.
"""

import atexit
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

CAPACITY = 2_000
ATTEMPTS = 2  # the second is for a connection that went stale while it was idle
DRAIN_SECONDS = 1.0

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Outbox(Generic[Key, Value]):
    """Sends values in order, one at a time, from a daemon thread of its own.

    A value whose key already waits is merged into the waiting one. After a fork the child starts
    empty, with its own thread; the parent sends what was waiting.
    """

    _changed: threading.Condition
    _waiting: "OrderedDict[Key, Value]"
    _thread: threading.Thread | None
    _busy: bool
    _dropped: int
    _is_failing: bool

    def __init__(
        self,
        name: str,
        *,
        send: Callable[[Key, Value], None],
        merge: Callable[[Value, Value], Value],
        capacity: int = CAPACITY,
    ) -> None:
        self._name = name
        self._send = send
        self._merge = merge
        self._capacity = capacity
        self._start_empty()
        os.register_at_fork(after_in_child=self._start_empty)
        atexit.register(self.drain, timeout=DRAIN_SECONDS)

    def put(self, key: Key, value: Value) -> None:
        """Queue the value; returns at once, whatever the state of the other end."""
        with self._changed:
            if key in self._waiting:
                self._waiting[key] = self._merge(self._waiting[key], value)
                return
            if len(self._waiting) >= self._capacity:
                self._dropped += 1
                return
            self._waiting[key] = value
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def drain(self, *, timeout: float) -> bool:
        """Wait until everything is sent or dropped; returns whether it was within the time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def _start_empty(self) -> None:
        self._changed = threading.Condition()
        self._waiting = OrderedDict()
        self._busy = False
        self._thread = None
        self._dropped = 0
        self._is_failing = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                key, value = self._waiting.popitem(last=False)
                self._busy = True
            try:
                self._try(key, value)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _try(self, key: Key, value: Value) -> None:
        for left in reversed(range(ATTEMPTS)):
            try:
                self._send(key, value)
            except Exception as error:  # the thread outlives every broker
                if not left:
                    self._failed(error)
            else:
                self._sent()
                return

    def _failed(self, error: Exception) -> None:
        self._dropped += 1
        if not self._is_failing:
            self._is_failing = True
            log.warning("%s cannot send, sweeps take over", self._name, extra={"error": str(error)})

    def _sent(self) -> None:
        if self._is_failing or self._dropped:
            log.warning("%s sends again", self._name, extra={"dropped": self._dropped})
            self._is_failing = False
            self._dropped = 0
