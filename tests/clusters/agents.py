"""Runs the real node agent against its double, as the scheduler would."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.doubles.agent_portal import AgentPortal

AGENT = Path(__file__).resolve().parents[2] / "clusters" / "agent" / "slipway_agent.py"
PYTHON = os.environ.get("SLIPWAY_TEST_AGENT_PYTHON", sys.executable)
"""Set it to an old Python to see that the agent runs there."""


class Agent:
    """One agent process, or one courier."""

    def __init__(
        self, portal: AgentPortal, folder: Path, *words: str, environment: dict | None = None
    ) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [PYTHON, "-I", str(AGENT), *words],
            env={
                "PATH": os.environ["PATH"],
                "SLIPWAY_AGENT_URL": portal.url,
                "SLIPWAY_AGENT_TOKEN": portal.token,
                "SLIPWAY_AGENT_DIR": str(folder),
                **(environment or {}),
            },
            start_new_session=True,
            stderr=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ended(self, *, seconds: float = 30) -> int:
        """Wait for the end and return its code, a signal as a negative number."""
        try:
            self.said = self.process.communicate(timeout=seconds)[1].decode()
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode


def run(portal: AgentPortal, folder: Path, *argv: str, **environment: str) -> Agent:
    return Agent(portal, folder, "run", "--", *argv, environment=environment)


def run_shell(portal: AgentPortal, folder: Path, script: str, **environment: str) -> Agent:
    return run(portal, folder, "/bin/sh", "-c", script, **environment)


def run_python(portal: AgentPortal, folder: Path, source: str, **environment: str) -> Agent:
    return run(portal, folder, sys.executable, "-c", source, **environment)


def deliver(portal: AgentPortal, folder: Path) -> Agent:
    return Agent(portal, folder, "deliver", str(folder))


def wait_for(is_so: Callable[[], object], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        os.sched_yield()


def spool_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((folder / "spool").glob("*")))


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
