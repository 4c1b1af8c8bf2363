"""The environment, read once: typed, documented, checked.

The only reader of `os.environ` in Slipway, used by the Django settings, by the supervisor and by
the client. It imports the standard library only.
"""

import dataclasses
import difflib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from portal import env_parsers as parse

# Names that a job sees or that tests read: known here, and nobody's setting.
FOREIGN_NAMES = frozenset(
    {
        "SLIPWAY_JOB_ID",
        "SLIPWAY_ATTEMPT",
        "SLIPWAY_NODES",
        "SLIPWAY_NODE_RANK",
        "SLIPWAY_CHECKPOINT_DIR",
        "SLIPWAY_RESUME_FROM",
    }
)
CLIENT = ("url", "token")
FOREIGN_PREFIXES = ("SLIPWAY_PARAM_", "SLIPWAY_TEST_")


class EnvError(Exception):
    """One sentence for the operator: which variable, what is wrong, what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One environment variable: its name, how it is read, its default as text, its meaning."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    doc: str


def _setting(
    parser: Callable[[str], Any], default: str | None, doc: str, *, masked: bool = False
) -> Any:
    return dataclasses.field(
        repr=not masked, metadata={"parse": parser, "default": default, "doc": doc}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """Every setting of Slipway; made by `load` alone."""

    home: Path = _setting(  # noqa: RUF009 - returns a dataclasses.field
        parse.home, "./var", "Folder for all state of the embedded default, mode 0700."
    )
    host: str = _setting(parse.text, "127.0.0.1", "Address on which web listens.")
    port: int = _setting(parse.integer(1, 65535), "8000", "TCP port on which web listens.")
    public_url: str = _setting(
        parse.url("https", "http"),
        None,
        "Address at which browsers and nodes reach the portal; default `http://HOST:PORT`.",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        parse.words,
        "",
        "Comma list of addresses or networks of reverse proxies whose `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are believed; `*` believes everybody.",
    )
    secret_key: str = _setting(
        parse.secret_key,
        None,
        "Signs sessions and links; generated into `SLIPWAY_HOME/secrets` when absent.",
        masked=True,
    )
    encryption_keys: tuple[bytes, ...] = _setting(
        parse.keys,
        None,
        "Comma list of 32-byte keys in base64url for stored secrets: the first encrypts, all "
        "decrypt; generated into `SLIPWAY_HOME/secrets` when absent.",
        masked=True,
    )
    database_url: str = _setting(
        parse.url("postgresql", "postgres"),
        None,
        "PostgreSQL to use, such as `postgresql://user:password@host:5432/slipway`; absent: the "
        "embedded PostgreSQL.",
        masked=True,
    )
    redis_url: str = _setting(
        parse.url("redis", "rediss", "unix"),
        None,
        "Redis or Valkey to use, such as `redis://:password@host:6379/0`; absent: the embedded "
        "Valkey.",
        masked=True,
    )
    bootstrap_admin_email: str = _setting(
        parse.text,
        "admin@slipway.local",
        "E-mail address of the first admin; read at the first start only.",
    )
    bootstrap_admin_password: str | None = _setting(
        parse.text,
        None,
        "Password of the first admin; absent: one is made and printed once.",
        masked=True,
    )
    bootstrap_token: str | None = _setting(
        parse.text,
        None,
        "Becomes an API token of the first admin, as given; read at the first start only.",
        masked=True,
    )
    oidc_issuer_url: str | None = _setting(
        parse.url("https", "http"),
        None,
        "Issuer of an OpenID Connect provider; switches that way of login on.",
    )
    oidc_client_id: str | None = _setting(parse.text, None, "Client id at that provider.")
    oidc_client_secret: str | None = _setting(
        parse.text, None, "Client secret at that provider.", masked=True
    )
    oidc_name: str = _setting(
        parse.text, "company account", "What the login button calls that provider."
    )
    mfa: tuple[str, ...] = _setting(
        parse.factors, "", "Comma list of second factors on offer: `totp`, `passkeys`."
    )
    aws_endpoint_url: str | None = _setting(
        parse.url("https", "http"),
        None,
        "Address used instead of every AWS endpoint, for tests and private clouds.",
    )
    prometheus_url: str | None = _setting(
        parse.url("https", "http"), None, "Prometheus from which deep metric history is read."
    )
    email_url: str | None = _setting(
        parse.url(
            "smtp", "smtps", "smtp+tls", "smtp+ssl", "submission", "console", "file", "memory"
        ),
        None,
        "Mail server, such as `smtp+tls://user:password@host:587`; absent: no mail is sent.",
        masked=True,
    )
    email_from: str = _setting(parse.text, "slipway@localhost", "Sender address of mail.")
    log_format: Literal["json", "console"] = _setting(
        parse.choice("json", "console"), "console", "How log lines look."
    )
    debug: bool = _setting(
        parse.boolean, "false", "Shows tracebacks in pages; never for production."
    )
    sweep_seconds: int = _setting(
        parse.integer(1, 3600), "10", "Seconds between two sweeps for work whose wake-up was lost."
    )
    allowed_networks: tuple[IPv4Network | IPv6Network, ...] = _setting(
        parse.networks,
        "",
        "Comma list of private networks (CIDR) that clusters of teams may point to.",
    )
    log_max_bytes: int = _setting(
        parse.integer(65536, 1 << 50),
        str(1 << 30),
        "Bytes of log kept for a job: the first half and the newest half.",
    )
    log_days: int = _setting(parse.integer(1, 36500), "90", "Days for which logs are kept.")
    sample_days: tuple[int, int] = _setting(
        parse.days, "30,365", "Days for which 1-minute,15-minute samples are kept."
    )
    disk_floor_bytes: int = _setting(
        parse.integer(0, 1 << 50),
        str(1 << 30),
        "Free bytes below which new jobs wait and log ingest answers 503.",
    )
    url: str | None = _setting(
        parse.url("https", "http"), None, "Client only: address of the portal."
    )
    token: str | None = _setting(parse.text, None, "Client only: API token.", masked=True)

    @property
    def celery_broker_url(self) -> str:
        """The same Redis in the form that Celery takes."""
        if not self.redis_url.startswith("unix://"):
            return self.redis_url
        parts = urlsplit(self.redis_url)
        words = dict(word.split("=", 1) for word in parts.query.split("&") if "=" in word)
        password = words.get("password", parts.password or "")
        login = f"{parts.username or ''}:{password}@" if password else ""
        return f"redis+socket://{login}{parts.path}?virtual_host={words.get('db', '0')}"

    @property
    def loopback_url(self) -> str:
        """Address of the portal for programs of this machine."""
        return f"http://{_host(self.host)}:{self.port}"

    @property
    def has_wall(self) -> bool:
        """Whether local jobs run as users of their own; that takes root."""
        return os.geteuid() == 0

    @property
    def local_jobs_folder(self) -> Path:
        """Folder of local jobs; as root outside the home, which their users may not enter."""
        if self.has_wall:
            name = hashlib.sha256(str(self.home).encode()).hexdigest()[:12]
            return Path("/var/lib/slipway") / name / "jobs"
        return self.home / "jobs"

    @property
    def sockets(self) -> Path:
        """Folder of the embedded services' sockets, short enough for a socket address."""
        folder = self.home / "run"
        return folder.readlink() if folder.is_symlink() else folder


def settings() -> tuple[Setting, ...]:
    """Every setting, in the order in which the documentation lists them."""
    return tuple(_setting_of(field) for field in dataclasses.fields(Env))


def load(
    environ: Mapping[str, str] | None = None, *, strict: bool = True, need_keys: bool = True
) -> Env:
    """Read and check all settings.

    An empty variable counts as absent. `strict=False`, for the client, demands only that its own
    settings are right and reads no file: a portal's environment never stops the client.
    `need_keys=False` is for the supervisor, which makes the keys. Raises `EnvError`.
    """
    source = os.environ if environ is None else environ
    given = {name: value for name, value in source.items() if value}
    if strict:
        _refuse_unknown(given)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Env):
        setting = _setting_of(field)
        try:
            values[field.name] = _read(setting, given.get(setting.name, setting.default))
        except EnvError:
            if strict or field.name in CLIENT:
                raise
            values[field.name] = _read(setting, setting.default)
    home: Path = values["home"]
    need = strict and need_keys and "DATABASE_URL" in given
    values["public_url"] = (
        values["public_url"] or f"http://{_host(values['host'])}:{values['port']}"
    )
    if not strict:
        return Env(**values)
    for name in ("secret_key", "encryption_keys"):
        values[name] = values[name] or _read_key(home, name, need=need)
    env = Env(**values)
    return dataclasses.replace(
        env,
        database_url=env.database_url or _embedded_database_url(env),
        redis_url=env.redis_url or _embedded_redis_url(env),
    )


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Give the folder of the client's own file: `slipway` in XDG_CONFIG_HOME or `~/.config`."""
    source = os.environ if environ is None else environ
    given = Path(source.get("XDG_CONFIG_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".config") / "slipway"


def child_environ(**changes: str) -> dict[str, str]:
    """Give the environment for a child process: ours with `changes`."""
    return {**os.environ, **changes}


def _setting_of(field: "dataclasses.Field[Any]") -> Setting:
    prefix = "" if field.name in ("database_url", "redis_url") else "SLIPWAY_"
    return Setting(name=prefix + field.name.upper(), **field.metadata)


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = [setting.name for setting in settings()]
    for name in sorted(given):
        if not name.startswith("SLIPWAY_") or name in known or name in FOREIGN_NAMES:
            continue
        if name.startswith(FOREIGN_PREFIXES):
            continue
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        remedy = f"did you mean {nearest[0]}?" if nearest else "see docs/operating.md; unset it"
        raise EnvError(f"{name} is not a setting of Slipway: {remedy}")


def _read(setting: Setting, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return setting.parse(text)
    except ValueError as error:
        raise EnvError(f"{setting.name} {error}") from None


def _read_key(home: Path, name: str, *, need: bool) -> Any:
    setting = next(s for s in settings() if s.name == f"SLIPWAY_{name.upper()}")
    try:
        return _read(setting, (home / "secrets" / name).read_text().strip())
    except FileNotFoundError:
        pass
    except OSError as error:
        raise EnvError(
            f"{error.filename} cannot be read ({error.strerror}); mend its owner"
        ) from None
    if need:
        raise EnvError(f"{setting.name} is missing; set it, the same for every process")
    return () if name == "encryption_keys" else ""


def _password(home: Path, name: str) -> str:
    try:
        return (home / "secrets" / name).read_text().strip()
    except OSError:
        return ""


def _host(host: str) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"[{name}]" if ":" in name else name


def _embedded_database_url(env: Env) -> str:
    # Upper case letters are escaped too, since urlsplit() lowers the host part.
    folder = "".join(
        letter
        if letter.islower() and letter.isascii()
        else "".join(f"%{b:02X}" for b in letter.encode())
        for letter in str(env.sockets)
    )
    return f"postgresql://slipway:{_password(env.home, 'database_password')}@{folder}/slipway"


def _embedded_redis_url(env: Env) -> str:
    password = _password(env.home, "redis_password")
    return f"unix://{quote(str(env.sockets))}/valkey.sock?db=0&password={password}"
