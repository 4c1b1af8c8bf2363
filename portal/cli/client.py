"""Speaks REST with the portal; every way in which that fails becomes one sentence."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_plus

from portal.cli.config import Account
from portal.cli.failure import CANNOT_REACH, NOT_SIGNED_IN, REFUSED, USAGE, Failure

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

TIMEOUT_SECONDS = 30
TRIES = 4
WAIT_MOST_SECONDS = 20
PAGE = 500
BUSY = frozenset({429, 503})
GATEWAY = frozenset({502, 503, 504})


class Portal:
    """One portal, by one token."""

    def __init__(self, account: Account) -> None:
        import httpx

        self.account = account
        try:
            self._http = httpx.Client(
                base_url=f"{account.url}/api/v1/",
                headers={"Authorization": f"Bearer {account.token}", "User-Agent": "slipway"},
                timeout=TIMEOUT_SECONDS,
            )
        except httpx.InvalidURL as error:
            message = f"{account.url} is no address ({error})."
            raise Failure(message, exit_code=USAGE) from error

    def get(self, *path: str, **query: Any) -> Any:
        """Return what a path holds; waits and tries again while the portal is busy."""
        import tenacity

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(TRIES),
            retry=tenacity.retry_if_result(lambda response: response.status_code in BUSY),
            wait=_wait,
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        return self._read(retrying(self._send, "GET", path, query=query))

    def every(self, *path: str, most: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page after page, at most `most`."""
        limit = PAGE if most is None else min(most, PAGE)
        page = self.get(*path, limit=limit, **query)
        left = most
        while True:
            rows = page["results"][:left]
            yield from rows
            left = None if left is None else left - len(rows)
            if page["next"] is None or left == 0:
                return
            cursor = page["next"].rsplit("cursor=", 1)[-1].split("&", 1)[0]
            page = self.get(*path, limit=limit, cursor=unquote_plus(cursor), **query)

    def send(self, method: str, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Change something and return the answer; tried once."""
        return self._read(self._send(method, path, body=body))

    def _send(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> "httpx.Response":
        import httpx

        address = "/".join(quote(part, safe="") for part in path)
        headers = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
        try:
            return self._http.request(method, address, params=query, json=body, headers=headers)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            message = f"Cannot reach {self.account.url} ({reason}). Is the portal up, is it there?"
            raise Failure(message, exit_code=CANNOT_REACH) from error

    def _read(self, response: "httpx.Response") -> Any:
        status = response.status_code
        if status == 204:
            return None
        kind = response.headers.get("Content-Type", "")
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            if response.is_success and kind.startswith("application/json"):
                return response.json()
            if kind.startswith("application/problem+json"):
                raise _failure_of(response.json(), status=status)
        where = response.headers.get("Location", "")
        hint = f" It points to {where}." if where else ""
        message = f"What answers at {self.account.url} ({status}) is no Slipway portal.{hint}"
        raise Failure(message, exit_code=CANNOT_REACH)


def _failure_of(problem: Mapping[str, Any], *, status: int) -> Failure:
    """Turn a problem+json body into one sentence."""
    text = str(problem.get("detail", problem.get("title", "The portal refused.")))
    fields = [f"{e['pointer'].lstrip('/')}: {e['message']}" for e in problem.get("errors", [])]
    if fields and not all(e["message"] == text for e in problem["errors"]):
        text = f"{text} {' '.join(fields)}"
    if status == 401:
        return Failure(f"{text} Run `slipway login`.", exit_code=NOT_SIGNED_IN)
    if status in GATEWAY:
        return Failure(text, exit_code=CANNOT_REACH)
    if status >= 500:
        text = f"{text} Its id is {problem.get('request_id', 'unknown')}."
    return Failure(text, exit_code=REFUSED)


def _wait(state: "RetryCallState") -> float:
    """Return the seconds that `Retry-After` asks for, or 1, 2, 4 …, never more than a few."""
    response = state.outcome.result() if state.outcome else None
    asked = response.headers.get("Retry-After", "") if response is not None else ""
    seconds = int(asked) if asked.isdigit() else 2 ** (state.attempt_number - 1)
    return float(min(seconds, WAIT_MOST_SECONDS))
