"""The Python environment `.venv`: made from nothing, repaired when half-made, left alone when good.

pip installs a hash-locked uv into the environment, and uv installs the rest from a hash-locked
list.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from portal import env
from portal.env_parsers import REPOSITORY
from portal.supervisor.terminal import Failure, say, step

VENV = REPOSITORY / ".venv"
PYTHON = VENV / "bin" / "python"
UNFINISHED = VENV / "unfinished"  # exists while packages are being installed
LEAST_FREE_BYTES = 1 << 30
# How pip's settings are called in uv's environment; an index is only handed on when it is plain.
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}


def ensure(lock: str = "requirements.lock") -> bool:
    """Make `.venv` hold exactly-hashed packages of `lock`; do nothing when it already does.

    Idempotent, and safe when two commands start at once. Tells whether it had to install.
    """
    if _is_installed(lock):
        return False
    with alone(REPOSITORY):
        if _is_installed(lock):
            return False
        _check_disk()
        try:
            _install(lock)
        except OSError as error:
            raise Failure(
                f"the Python environment {VENV} cannot be written ({error.strerror}); "
                "make the folder writable or start from a copy that is"
            ) from None
    return True


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder of the installation; a second command waits here."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another command is installing here; waiting for it …")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def digest_of(*paths: Path) -> str:
    """Hash the names and the contents of files, in the given order."""
    total = hashlib.sha256()
    for path in paths:
        total.update(str(path.relative_to(REPOSITORY)).encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def uv(*arguments: str) -> None:
    """Run uv on the user's own package indexes; raises `Failure` when it fails."""
    command = [str(VENV / "bin" / "uv"), *arguments]
    if not has_writable_home():
        command.append("--no-cache")
    if _run_alone(command, env=env.child_environ(**_uv_environ())).returncode:
        raise Failure(
            "the Python packages could not be installed (see above); check the network and pip's "
            "index settings (`pip config list`), then run the same command again"
        )


def has_writable_home() -> bool:
    """Tell whether caches can lie where they usually do."""
    return os.access(Path("~").expanduser(), os.W_OK)


def _stamp(lock: str) -> Path:
    return VENV / f"installed-{lock}"


def _wanted(lock: str) -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor} {digest_of(REPOSITORY / lock)}\n"


def _is_installed(lock: str) -> bool:
    stamp = _stamp(lock)
    return (
        stamp.exists()
        and stamp.read_text() == _wanted(lock)
        and PYTHON.exists()
        and not UNFINISHED.exists()
    )


def _check_disk() -> None:
    free = shutil.disk_usage(REPOSITORY).free
    if free < LEAST_FREE_BYTES:
        raise Failure(
            f"{REPOSITORY} has {free >> 20} MiB of free disk and an installation needs "
            f"{LEAST_FREE_BYTES >> 20} MiB; free some and run the same command again"
        )


def _install(lock: str) -> None:
    if UNFINISHED.exists():
        say("An earlier installation was interrupted; making the environment anew.")
    if UNFINISHED.exists() or not _runs_this_python():
        _make_venv()
    UNFINISHED.touch()
    _stamp(lock).unlink(missing_ok=True)
    _install_uv()
    count = sum("==" in line for line in (REPOSITORY / lock).read_text().splitlines())
    with step(f"Installing {count} Python packages"):
        uv(
            "pip",
            "install",
            "--quiet",
            "--python",
            str(PYTHON),
            "--require-hashes",
            "-r",
            str(REPOSITORY / lock),
        )
    _stamp(lock).write_text(_wanted(lock))
    UNFINISHED.unlink()


def _runs_this_python() -> bool:
    if not PYTHON.exists():
        return False
    code = "import sys; print(*sys.version_info[:2], sep='.')"
    found = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip() == f"{sys.version_info.major}.{sys.version_info.minor}"


def _run_alone(command: list[Any], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program that Ctrl-C does not reach: it comes to us, and we end the program and its own.

    Otherwise each of them would say in its own words, and with tracebacks, that it was interrupted.
    """
    process = subprocess.Popen(command, text=True, start_new_session=True, **options)
    try:
        said, complained = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def _make_venv() -> None:
    with step(f"Making the Python environment {VENV}"):
        VENV.mkdir(exist_ok=True)
        made = _run_alone(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", VENV],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    if made.returncode:
        raise Failure(f"python3 cannot make an environment in {VENV}: {_last_line(made.stderr)}")


def _install_uv() -> None:
    lock = REPOSITORY / "requirements-uv.lock"
    wanted = lock.read_text().split(" ", 1)[0].split("==")[1]
    if (VENV / "bin" / "uv").exists() and _uv_version() == wanted:
        return
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        raise Failure("python3 has no pip; install it (Debian: apt-get install python3-pip)")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    with step("Installing the installer (uv)"):
        done = _run_alone(
            [*pip, "--python", PYTHON, "install", *quiet, "--require-hashes", "-r", lock],
        )
    if done.returncode:
        raise Failure(
            "pip could not install uv (see above); check the network and pip's index settings "
            "(`pip config list`), then run the same command again"
        )


def _uv_version() -> str:
    asked = [str(VENV / "bin" / "uv"), "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return said[1] if len(said) > 1 else ""


def _uv_environ() -> dict[str, str]:
    """Hand pip's plain settings to uv, unless uv has settings of its own."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    given = env.child_environ()
    changes = {
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        target = UV_NAMES.get(name.rpartition(".")[2])
        if target and target not in given:
            changes[target] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    if "UV_FIND_LINKS" in changes:
        changes["UV_FIND_LINKS"] = changes["UV_FIND_LINKS"].replace(" ", ",")
    return changes


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason given"
