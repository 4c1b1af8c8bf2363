"""What must hold so that jobs run on this machine, tried one by one; starts no job."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clusters.schedulers.contract import CheckStep
from clusters.schedulers.local import runner
from clusters.schedulers.local.adapter import PATH, PYTHONS

SECONDS = 5
_VERSION = "import platform; print(platform.python_version())"
_LOADS = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='check')"
_REACHES = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1], timeout=4).status)
"""


class _Fault(Exception):
    """What is not as it should be, and how to mend it; jobs may run all the same."""

    def __init__(self, message: str, remedy: str, *, is_ok: bool = False) -> None:
        super().__init__(message)
        self.message, self.remedy, self.is_ok = message, remedy, is_ok


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChecks:
    """Tries the steps of a job's start on this machine, as the user that would run it."""

    folder: Path
    wall: bool
    portal_url: str
    uid: int
    """The number of the user whose place is tried, behind a wall."""

    def check(self) -> Sequence[CheckStep]:
        """Try every step; a later one is tried though an earlier one failed."""
        steps: tuple[tuple[str, Callable[[], str]], ...] = (
            ("The folder of jobs can be written", self._folder),
            ("As whom jobs run", self._wall),
            ("python3 is there", self._python),
            ("A job's runner can start", self._runner),
            ("Its agent reaches the portal", self._portal),
        )
        return [_try(title, call) for title, call in steps]

    def _folder(self) -> str:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".check-"):
                free = shutil.disk_usage(self.folder).free
        except OSError as error:
            remedy = f"Let the portal's user write {self.folder}, or free space there."
            raise _Fault(str(error), remedy) from error
        return f"{self.folder}, {free / 2**30:.1f} GiB free"

    def _wall(self) -> str:
        if self.wall:
            self._run("-c", "pass", remedy="Install setpriv (package util-linux).")
            return f"Each team's jobs run as a user of its own, from number {self.uid} on."
        message = f"Jobs run as {_name_of(os.geteuid())} and can read what this portal can."
        remedy = "Start Slipway as root, and each team gets a user of its own."
        raise _Fault(message, remedy, is_ok=True)

    def _python(self) -> str:
        found = self._run("-c", _VERSION, remedy="Install Python 3.6 or newer as /usr/bin/python3.")
        return f"{_python()}, version {found}"

    def _runner(self) -> str:
        copy = self.folder / "runner.py"
        source = copy if copy.exists() else Path(runner.__file__)
        remedy = f"Let everybody enter {self.folder} and the folders above it: chmod a+x."
        self._run("-c", _LOADS, str(source), remedy=remedy)
        return ""

    def _portal(self) -> str:
        address = f"{self.portal_url}/healthz"
        remedy = "Let connections from this machine to that address through, and check its port."
        self._run("-c", _REACHES, address, remedy=remedy)
        return self.portal_url

    def _run(self, *arguments: str, remedy: str) -> str:
        """Run the machine's Python as a job's user would; return what it prints."""
        command = [_python(), "-I", *arguments]
        if self.wall:
            ids = (f"--reuid={self.uid}", f"--regid={self.uid}")
            command = ["setpriv", *ids, "--clear-groups", "--no-new-privs", "--", *command]
        try:
            done = subprocess.run(  # noqa: S603 - our own programs
                command,
                env={"PATH": PATH},
                cwd="/",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _Fault(str(error)[:300], remedy) from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"It ended with {done.returncode}."])[-1]
            raise _Fault(last[:300], remedy)
        return done.stdout.strip()[:300]


def _try(title: str, call: Callable[[], str]) -> CheckStep:
    began = time.monotonic()
    try:
        step = CheckStep(title=title, is_ok=True, message=call())
    except _Fault as fault:
        message, remedy = fault.message, fault.remedy
        step = CheckStep(title=title, is_ok=fault.is_ok, message=message, remedy=remedy)
    return replace(step, seconds=round(time.monotonic() - began, 3))


def _name_of(uid: int) -> str:
    """Return a user's name; in a container the number may be all there is."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _python() -> str:
    return next((path for path in PYTHONS if Path(path).exists()), "python3")
