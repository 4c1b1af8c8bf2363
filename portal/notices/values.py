"""Levels, kinds and states of notices. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class LevelName(StrEnum):
    """How a matter stands, from well to worst."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    BAD = "bad"

    @property
    def rank(self) -> int:
        """Position from 0 (`ok`) to 3 (`bad`)."""
        return list(LevelName).index(self)


class Kind(StrEnum):
    """How a route reaches people."""

    MAIL = "mail"
    SLACK = "slack"
    WEBHOOK = "webhook"


class State(StrEnum):
    """How far a delivery is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent, the same at every attempt."""

    id: str
    """The delivery's id; receivers recognise a repetition by it."""
    subject: str
    text: str
    body: bytes
    """JSON of the generic webhook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The receiver took the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The receiver did not take it; trying again later may help."""

    error: str
    retry_after_seconds: float = 0
    is_gone: bool = False
    """The receiver said that it is gone for good (410)."""


Outcome = Sent | Failed


def concerns(minimum: LevelName, *, previous: LevelName, level: LevelName) -> bool:
    """Tell whether a route hears of the change; it also hears that what it heard of is over."""
    return max(previous.rank, level.rank) >= minimum.rank
