"""Where the client keeps the portal's address and the token: one file that only its owner reads."""

import contextlib
import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from portal import env, env_parsers
from portal.cli.failure import NOT_SIGNED_IN, USAGE, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A portal's address and a token for it."""

    url: str
    token: str

    def __post_init__(self) -> None:
        try:
            env_parsers.url("https", "http")(self.url)
        except ValueError as error:
            raise Failure(f"{self.url!r} {error}.", exit_code=USAGE) from error
        if not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            message = "A token is one word of plain letters; copy it whole and without line ends."
            raise Failure(message, exit_code=USAGE)

    def __repr__(self) -> str:
        return f"Account(url={self.url!r}, token=…)"


def path() -> Path:
    """Return the file's place."""
    return env.config_folder() / "config.toml"


def read() -> Account | None:
    """Return what `login` has stored, or `None`. Raises `Failure` for a file that is none."""
    try:
        stored = tomllib.loads(path().read_text())
        return Account(url=str(stored["url"]), token=str(stored["token"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        message = f"{path()} cannot be read ({error}); delete it and run `slipway login`."
        raise Failure(message, exit_code=NOT_SIGNED_IN) from error


def write(account: Account) -> None:
    """Store the account, mode 0600 in a folder of mode 0700, whole or not at all."""
    file = path()
    text = f"url = {json.dumps(account.url)}\ntoken = {json.dumps(account.token)}\n"
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
        fresh.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        message = f"{file} cannot be written ({error.strerror}); set XDG_CONFIG_HOME to a folder."
        raise Failure(message) from error


def forget() -> bool:
    """Delete the file; tell whether there was one."""
    try:
        path().unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Failure(f"{path()} cannot be deleted ({error.strerror}).") from error
    return True


def environment() -> env.Env:
    """Return the client's environment; raise `Failure` when SLIPWAY_URL or _TOKEN is wrong."""
    try:
        return env.load(strict=False)
    except env.EnvError as error:
        raise Failure(f"{error}.", exit_code=USAGE) from error


def account(*, url: str | None, token: str | None) -> Account:
    """Return what to use: options first, then the environment, then what `login` has stored.

    A stored token goes to the address that it was stored with and to no other.
    """
    given = environment()
    url, token = url or given.url, token or given.token
    stored = read() if url is None or token is None else None
    if stored is not None and (url is None or url.rstrip("/") == stored.url):
        url, token = stored.url, token or stored.token
    if token is None:
        where = f" at {url}" if url else ""
        raise Failure(f"Not signed in{where}. Run `slipway login`.", exit_code=NOT_SIGNED_IN)
    return Account(url=(url or given.public_url).rstrip("/"), token=token)
