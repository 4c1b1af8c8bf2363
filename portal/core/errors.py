"""Every error that crosses a room, and its shape on the wire (RFC 9457). Standard library only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

PROBLEM = "application/problem+json"
TITLES = {
    400: "The request is not valid",
    401: "Who are you?",
    403: "You may not do this",
    404: "There is nothing here",
    405: "No such method here",
    406: "Not in that format",
    409: "Not now",
    413: "Too large",
    415: "Send JSON",
    422: "Refused",
    429: "Too many requests",
    500: "Something broke on our side",
    501: "Not supported",
    502: "Another system refused",
    503: "Slipway is away for a moment",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One wrong field: `pointer` is a JSON pointer into the request's body."""

    pointer: str
    message: str


class SlipwayError(Exception):
    """The root: `code` is stable and for programs, `message` is for people and says the remedy."""

    status: ClassVar[int] = 500

    def __init__(
        self, code: str, message: str, *, errors: Sequence[FieldError] = (), **facts: Any
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.errors = tuple(errors)
        self.facts = facts

    @classmethod
    def at(cls, field: str, message: str, *, code: str = "invalid") -> Self:
        """Return the error with its message at one field of the body."""
        return cls(code, message, errors=[FieldError(pointer=f"/{field}", message=message)])


class NotAllowed(SlipwayError):
    """The person may see the thing and may not do this."""

    status = 403


class NotFound(SlipwayError):
    """There is no such thing, or it is not the person's to see."""

    status = 404


class Conflict(SlipwayError):
    """The state of the thing forbids this now."""

    status = 409


class Refused(SlipwayError):
    """The request is understood and refused; the facts say what would work."""

    status = 422


class Invalid(SlipwayError):
    """The request is malformed; `errors` name the fields."""

    status = 400


class OutsideError(SlipwayError):
    """The root of the four errors that adapters raise, and no more."""

    status = 502


class Unavailable(OutsideError):
    """Time-out, 5xx or throttled: come back later. Never means that something is gone."""

    status = 503


class Denied(OutsideError):
    """The credentials do not suffice: a person must act."""


class Rejected(OutsideError):
    """Our request is wrong, finally, in the outside system's own words."""


class Unsupported(OutsideError):
    """The outside system cannot do this at all."""

    status = 501


def problem(
    *,
    status: int,
    code: str,
    detail: str,
    request_id: str,
    title: str = "",
    facts: Mapping[str, Any] | None = None,
    errors: Sequence[FieldError] = (),
) -> dict[str, Any]:
    """Return the members of an `application/problem+json` body (RFC 9457) with Slipway's own."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": title or TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        "facts": dict(facts or {}),
        "request_id": request_id,
    }
    if errors:
        body["errors"] = [{"pointer": e.pointer, "message": e.message} for e in errors]
    return body
