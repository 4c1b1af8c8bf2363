"""The state folder of the embedded default (`SLIPWAY_HOME`): checked, locked, its keys made."""

import base64
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from portal import env as environment
from portal.env import Env
from portal.supervisor import swap
from portal.supervisor.terminal import Failure, say

LEAST_FREE_BYTES = 200 << 20
LONGEST_SOCKET_BYTES = 107  # sun_path of Linux, less its closing NUL
LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"
LEAVING_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The lock of a home; held until every process that has `descriptor` is gone."""

    descriptor: int

    def write(self, text: str) -> None:
        """Note who holds the lock, for the sentence that a second command prints."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, text.encode(), 0)

    def release(self) -> None:
        """Let go; a watcher that is still ending processes keeps the lock until it is done."""
        os.close(self.descriptor)


def prepare(env: Env) -> Lock:
    """Make the folder and its keys, and lock it. Raises `Failure` with the remedy."""
    try:
        env.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(env.home)
        env.home.chmod(0o700)
        lock = take_lock(env)
        swap.finish(env.home)
        if worry := disk_worry(env.home):
            raise Failure(worry)
        make_keys(env.home)
        make_sockets_folder(env)
    except OSError as error:
        raise Failure(
            f"SLIPWAY_HOME={env.home} cannot be written ({error.strerror}); "
            "make it writable or set SLIPWAY_HOME to another folder"
        ) from None
    return lock


def take_lock(env: Env) -> Lock:
    """Lock the home. Waits for one that is just ending; raises `Failure` when another one runs."""
    descriptor = os.open(env.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LEAVING_SECONDS
    told = False
    while not _try_lock(descriptor):
        holder = os.pread(descriptor, 4096, 0).decode().split("\n")
        if (holder[0] and _is_alive(holder[0])) or time.monotonic() > deadline:
            os.close(descriptor)
            where = f" at {holder[1]}" if len(holder) > 1 and holder[1] else ""
            raise Failure(
                f"Slipway is already running on SLIPWAY_HOME={env.home} (process {holder[0] or '?'}"
                f"{where}); stop that one, or set another SLIPWAY_HOME and SLIPWAY_PORT"
            )
        if not told:
            say("The Slipway that ran here is still ending; waiting for it …")
            told = True
        time.sleep(0.1)
    lock = Lock(descriptor=descriptor)
    lock.write(f"{os.getpid()}\n")
    return lock


def is_running(env: Env) -> bool:
    """Tell whether a supervisor holds this home."""
    try:
        descriptor = os.open(env.home / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def make_keys(home: Path) -> None:
    """Write the keys that `home` lacks into `home/secrets`, mode 0600; keep those it has."""
    folder = home / "secrets"
    folder.mkdir(mode=0o700, exist_ok=True)
    made = {
        "secret_key": secrets.token_urlsafe(48),
        "encryption_keys": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "database_password": secrets.token_urlsafe(24),
        "database_owner_password": secrets.token_urlsafe(24),
        "redis_password": secrets.token_urlsafe(24),
    }
    for name, value in made.items():
        path = folder / name
        if not path.exists():
            draft = path.with_suffix(".new")
            draft.touch(mode=0o600)
            draft.write_text(f"{value}\n")
            draft.replace(path)


def make_sockets_folder(env: Env) -> None:
    """Make `home/run`, mode 0700: a folder, or a link to a short one when the path is too long."""
    run = env.home / "run"
    if len(os.fsencode(run / LONGEST_SOCKET_NAME)) <= LONGEST_SOCKET_BYTES:
        run.mkdir(mode=0o700, exist_ok=True)
        return
    name = hashlib.sha256(os.fsencode(env.home)).hexdigest()[:12]
    base = environment.child_environ().get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - 0700, owner checked
    if len(base) > LONGEST_SOCKET_BYTES - 40 or not os.access(base, os.W_OK):
        base = "/tmp"  # noqa: S108
    short = Path(base) / f"slipway-{os.geteuid()}-{name}"
    short.mkdir(mode=0o700, exist_ok=True)
    seen = short.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise Failure(f"{short} belongs to somebody else; set SLIPWAY_HOME to a shorter path")
    short.chmod(0o700)
    run.unlink(missing_ok=True)
    run.symlink_to(short)


def disk_worry(home: Path) -> str | None:
    """Say in one sentence that the disk is nearly full, or nothing."""
    free = shutil.disk_usage(home).free
    if free >= LEAST_FREE_BYTES:
        return None
    return (
        f"SLIPWAY_HOME={home} has {free >> 20} MiB of free disk and {LEAST_FREE_BYTES >> 20} MiB "
        "are needed; free some or set SLIPWAY_HOME to a folder on another disk"
    )


def _check_owner(home: Path) -> None:
    owner = home.stat().st_uid
    if owner != os.geteuid():
        raise Failure(
            f"SLIPWAY_HOME={home} belongs to user {owner} and this is user {os.geteuid()}; "
            "run as that user or set SLIPWAY_HOME to another folder"
        )


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: str) -> bool:
    return pid.isdigit() and Path(f"/proc/{pid}").exists()
