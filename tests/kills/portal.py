"""A portal by `./slipway up` with a home of its own, its parts by name, and jobs on it."""

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from portal import env as environment
from tests.supervisor.processes import ROOT, Supervisor, running, until

TOKEN = "slw_kills_" + "k" * 40
START_SECONDS = 240
PARTS = {
    "web": "portal.asgi:application",
    "worker": "reconcile,stream,notify",
    "beat": "beat/schedule",
    "valkey": "valkey-server",
    "postgres": "postgres -D",
}
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")


@dataclass
class Live:
    """A running portal."""

    home: Path
    port: int
    supervisor: Supervisor

    @property
    def folder(self) -> Path:
        """Where its local jobs are."""
        return environment.load({"SLIPWAY_HOME": str(self.home)}, need_keys=False).local_jobs_folder

    def processes(self, part: str) -> list[psutil.Process]:
        """The processes of a part, the parent first."""
        found = []
        for process in psutil.Process(self.supervisor.process.pid).children(recursive=True):
            try:
                line = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if PARTS[part] in line and "setpriv" not in line:
                found.append(process)
        return found

    def kill(self, part: str) -> None:
        """End a part at once, as the kernel does when memory is gone."""
        for process in self.processes(part)[:1]:
            os.kill(process.pid, signal.SIGKILL)

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Speak REST; what fails because a part is gone is tried again for a while."""
        answer: Any = None

        def is_there() -> bool:
            nonlocal answer
            try:
                with httpx.Client(timeout=10) as client:
                    url = f"http://127.0.0.1:{self.port}/api/v1{path}"
                    headers = {"Authorization": f"Bearer {TOKEN}", **more.pop("headers", {})}
                    answer = client.request(method, url, headers=headers, **more)
            except httpx.HTTPError:
                return False
            return answer.status_code < 500

        until(is_there, 60, lambda: f"{method} {path}: {answer}")
        assert answer.is_success, answer.text
        return answer

    def submit(self, command: str, **more: Any) -> str:
        """Submit a shell command; the id of the job."""
        body = {"definition": "shell-script", "team": "kills", "cluster": "local", **more}
        key = os.urandom(8).hex()
        answer = self.ask(
            "POST",
            "/jobs",
            json={**body, "parameters": {"command": command}},
            headers={"Idempotency-Key": key},
        )
        return str(answer.json()["id"])

    def job(self, job: str) -> dict[str, Any]:
        """The job as it is now."""
        found: dict[str, Any] = self.ask("GET", f"/jobs/{job}").json()
        return found

    def wait(self, job: str, *phases: str, seconds: float = 120) -> dict[str, Any]:
        """Wait for a phase; the job."""
        until(lambda: self.job(job)["phase"] in phases, seconds, lambda: str(self.job(job)))
        return self.job(job)

    def log(self, job: str) -> str:
        """The whole log once nothing follows any more."""
        path = f"/jobs/{job}/logs?limit=1"
        until(lambda: self.ask("GET", f"/jobs/{job}/logs?offset=-1").json()["complete"], 90, path)
        headers = {"Accept": "text/plain"}
        return str(self.ask("GET", f"/jobs/{job}/logs", headers=headers).text)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def live(folder: Path, *, home: Path | None = None, port: int | None = None) -> Iterator[Live]:
    """Run a portal; with a `home`, again on what an earlier one left."""
    port = port or free_port()
    place = home or folder / "home"
    environ = {
        "SLIPWAY_HOME": str(place),
        "SLIPWAY_PORT": str(port),
        "SLIPWAY_BOOTSTRAP_TOKEN": TOKEN,
        "SLIPWAY_BOOTSTRAP_ADMIN_PASSWORD": "kills-horse-battery",
    }
    with running([str(ROOT / "slipway"), "up"], folder, **environ) as started:
        found = Live(place, port, started)
        ends = ("slipway: Ready after", "slipway: error")
        until(
            lambda: any(e in started.text for e in ends) or started.process.poll() is not None,
            START_SECONDS,
            lambda: started.text,
        )
        assert ends[0] in started.text, started.text
        if home is None:
            found.ask("POST", "/teams", json={"slug": "kills", "name": "Kills"})
        yield found


def clean(found: Live) -> None:
    """Remove the folder of local jobs, which may lie outside of the home."""
    shutil.rmtree(found.folder, ignore_errors=True)
