"""Outgoing HTTP to addresses that users set: checked, resolved once, bounded. No Django.

The name is resolved once; every address it has must be allowed; the connection goes to a checked
address while Host, SNI and the certificate's name stay those of the URL. Redirects are answers.
"""

import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore
import httpx

from portal.core.addresses import Address, Network, refusal
from portal.core.errors import Refused, Unavailable

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MAX_URL: Final = 2_048
MAX_ADDRESSES: Final = 4
HOST_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")

Resolver = Callable[[str, int], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A checked URL: where to connect, and what to say there."""

    scheme: str
    host: str
    port: int
    path: str
    addresses: tuple[Address, ...]

    @property
    def ip(self) -> Address:
        """The address that is tried first."""
        return self.addresses[0]

    @property
    def authority(self) -> str:
        """Host and port as the Host header names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; `body` is cut at the limit, and then not `is_complete`."""

    status: int
    headers: Mapping[str, str]
    """Lower-case name → value."""
    body: bytes
    is_complete: bool


def resolve(host: str, port: int) -> list[str]:
    """Return the host's addresses by the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides which URLs may be called, and calls them."""

    allow_private: bool = False
    allowed_networks: Collection[Network] = ()
    own_listeners: Collection[tuple[str, int]] = ()
    """(host or address, port) pairs on which the portal itself answers."""
    resolver: Resolver = resolve
    ssl_context: ssl.SSLContext | None = None

    def check(self, url: str) -> Target:
        """Return where the URL leads.

        Raises `Refused` (code `address_refused`) with a sentence, and `Unavailable` (code
        `unknown_host`) when the name does not resolve now.
        """
        scheme, host, port, path = _parse(url)
        literal = _literal(host)
        addresses = (literal,) if literal else self._resolved(host, port)
        for address in addresses:
            reason = refusal(
                address,
                allow_private=self.allow_private,
                allowed_networks=self.allowed_networks,
            )
            if reason is None and self._is_own(host, address, port):
                reason = "the portal itself answers there"
            if reason is not None:
                raise _refused(f"{host} ({address}) may not be called: {reason}.")
        return Target(scheme=scheme, host=host, port=port, path=path, addresses=addresses)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        timeout: float = 10.0,
        max_bytes: int = 1 << 20,
    ) -> Answer:
        """Check the URL and call it; the whole exchange ends within `timeout` seconds.

        Redirects are not followed. Raises what `check` raises, and `Unavailable` (code
        `unreachable`) when no complete answer head came.
        """
        deadline = time.monotonic() + timeout
        target = self.check(url)
        sent = {"User-Agent": "Slipway/1", **(headers or {}), "Host": target.authority}
        request = httpcore.Request(
            method,
            httpcore.URL(
                scheme=target.scheme, host=target.host, port=target.port, target=target.path
            ),
            headers=list(sent.items()) + _length(content, method),
            content=content or None,
        )
        context = self.ssl_context or _default_context()
        backend = _Backend(addresses=target.addresses, deadline=deadline)
        try:
            with httpcore.ConnectionPool(ssl_context=context, network_backend=backend) as pool:
                return _read(pool.handle_request(request), max_bytes=max_bytes)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(
                "unreachable", f"{target.authority} did not answer: {reason}."
            ) from error

    def _resolved(self, host: str, port: int) -> tuple[Address, ...]:
        try:
            found = tuple(ip_address(text) for text in self.resolver(host, port))
        except (OSError, ValueError, UnicodeError) as error:
            raise Unavailable("unknown_host", f"{host} does not resolve: {error}.") from error
        if not found:
            raise Unavailable("unknown_host", f"{host} has no address.")
        return found[:MAX_ADDRESSES]

    def _is_own(self, host: str, address: Address, port: int) -> bool:
        for own_host, own_port in self.own_listeners:
            same = own_host.lower() in (host, str(address)) or _is_of_this_machine(address)
            if port == own_port and same:
                return True
        return False


def _parse(url: str) -> tuple[str, str, int, str]:
    """Take the URL apart strictly, so that no two readers can disagree about its host."""
    if len(url) > MAX_URL or any(c <= " " or c in '\\\x7f<>"^`{|}' for c in url):
        raise _refused("The URL is too long or contains characters that no URL may contain.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused(f"The URL cannot be read: {error}.") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise _refused("Only http and https URLs can be called.")
    if "[" in parts.netloc and ":" not in (parts.hostname or ""):
        raise _refused("Only an IPv6 address may stand in brackets.")
    if "@" in parts.netloc:
        raise _refused("The URL must not contain a user name or password.")
    if port == 0:
        raise _refused("Port 0 cannot be called.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii():
        raise _refused("Write other than ASCII characters of the URL's path as %XX.")
    return parts.scheme, _host(parts.hostname or ""), port or DEFAULT_PORTS[parts.scheme], path


def _host(written: str) -> str:
    if ":" in written:
        if "%" in written:
            raise _refused("An IPv6 address with a zone cannot be called.")
        return written
    try:
        host = written.encode("idna").decode().lower().removesuffix(".")
    except UnicodeError as error:
        raise _refused("The URL's host name is not a valid name.") from error
    if not host or set(host) - HOST_LETTERS or "" in host.split("."):
        raise _refused("The URL's host name is not a valid name.")
    return host


def _literal(host: str) -> Address | None:
    """Return the address that the host is, or `None` for a name.

    Decimal, octal, hexadecimal and shortened addresses are refused: systems read them differently.
    """
    try:
        return ip_address(host)
    except ValueError:
        last = host.rsplit(".", 1)[-1]
        if ":" in host or last.isdigit() or last.startswith("0x"):
            raise _refused(
                f"{host} is not a plain address; write it like 203.0.113.7 or [2001:db8::7]."
            ) from None
        return None


def _is_of_this_machine(address: Address) -> bool:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _refused(sentence: str) -> Refused:
    return Refused("address_refused", sentence)


def _length(content: bytes, method: str) -> list[tuple[str, str]]:
    has_body = content or method.upper() in ("POST", "PUT", "PATCH")
    return [("Content-Length", str(len(content)))] if has_body else []


@lru_cache(maxsize=1)
def _default_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _read(response: httpcore.Response, *, max_bytes: int) -> Answer:
    body = bytearray()
    is_complete = True
    try:
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > max_bytes:
                is_complete = False
                break
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
        is_complete = False
    finally:
        response.close()
    headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in response.headers}
    return Answer(
        status=response.status,
        headers=headers,
        body=bytes(body[:max_bytes]),
        is_complete=is_complete,
    )


class _Backend(httpcore.NetworkBackend):
    """Connects to the checked addresses, whatever host the pool names, and keeps the deadline."""

    def __init__(self, *, addresses: tuple[Address, ...], deadline: float) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - the pool's interface; the address was chosen before
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectTimeout("timed out")
        for position, address in enumerate(self._addresses):
            share = _left(self._deadline) / (len(self._addresses) - position)
            try:
                stream = self._inner.connect_tcp(
                    str(address), port, timeout=share, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self._deadline)
        raise failure


class _Stream(httpcore.NetworkStream):
    """A connection whose every step ends at the deadline, however slowly the other end drips."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._inner.read(max_bytes, timeout=_left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._inner.write(buffer, timeout=_left(self._deadline))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = _left(self._deadline)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("timed out")
    return left
