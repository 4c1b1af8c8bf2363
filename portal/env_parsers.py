"""How the text of one environment variable becomes a value; used by `portal.env` alone.

Every parser raises `ValueError` with the end of a sentence that begins with the variable's name.
"""

import base64
import binascii
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parent.parent


def text(value: str) -> str:
    """Take any text without NUL bytes."""
    if "\0" in value:
        raise ValueError("contains a NUL byte; remove it")
    return value


def home(value: str) -> Path:
    """Take a folder; `./var` lies in the repository, wherever the command is started."""
    path = Path(value).expanduser()
    return REPOSITORY / path if value == "./var" else path.absolute()


def integer(least: int, most: int) -> Callable[[str], int]:
    """Make a parser of whole numbers from `least` to `most`."""

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number from {least} to {most}") from None
        if not least <= number <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return number

    return parse


def boolean(value: str) -> bool:
    """Take true or false in the usual spellings."""
    match value.lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off" | "":
            return False
        case _:
            raise ValueError("must be true or false")


def url(*schemes: str) -> Callable[[str], str]:
    """Make a parser of addresses with one of `schemes`."""

    def parse(value: str) -> str:
        example = f"must be an address such as {schemes[0]}://…"
        try:
            parts = urlsplit(value)
            _ = parts.port
        except ValueError:
            raise ValueError(example) from None
        if parts.scheme not in schemes or not (parts.netloc or parts.path.strip("/")):
            raise ValueError(f"{example} (known: {', '.join(schemes)})")
        if parts.scheme in ("http", "https"):
            if not parts.hostname:
                raise ValueError(example)
            return value.rstrip("/")
        return value

    return parse


def choice(*known: str) -> Callable[[str], str]:
    """Make a parser of one of the `known` words."""

    def parse(value: str) -> str:
        if value not in known:
            raise ValueError(f"must be one of: {', '.join(known)}")
        return value

    return parse


def words(value: str) -> tuple[str, ...]:
    """Take a comma list."""
    return tuple(word.strip() for word in value.split(",") if word.strip())


def factors(value: str) -> tuple[str, ...]:
    """Take a comma list of second factors."""
    chosen = words(value)
    if set(chosen) - {"totp", "passkeys"}:
        raise ValueError("must be a comma list of: totp, passkeys")
    return chosen


def networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Take a comma list of networks in CIDR form."""
    try:
        return tuple(ip_network(word) for word in words(value))
    except ValueError as error:
        raise ValueError(f"must be a comma list such as 10.0.0.0/8,fd00::/8: {error}") from None


def keys(value: str) -> tuple[bytes, ...]:
    """Take a comma list of 32-byte keys in base64url, padding optional."""
    wrong = (
        "must be a comma list of 32-byte keys in base64url; make one with "
        "`openssl rand -base64 32 | tr +/ -_`"
    )
    try:
        found = tuple(
            base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True)
            for word in words(value)
        )
    except (ValueError, binascii.Error):
        raise ValueError(wrong) from None
    if not found or any(len(key) != 32 for key in found):
        raise ValueError(wrong)
    return found


def secret_key(value: str) -> str:
    """Take at least 32 characters."""
    if len(value) < 32:
        raise ValueError("must have at least 32 characters; make one with `openssl rand -hex 32`")
    return value


def days(value: str) -> tuple[int, int]:
    """Take two numbers of days."""
    day = integer(1, 36500)
    match words(value):
        case (one_minute, fifteen_minutes):
            return day(one_minute), day(fifteen_minutes)
        case _:
            raise ValueError("must be two numbers of days such as 30,365")
