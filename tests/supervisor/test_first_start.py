"""From a fresh checkout to a page, interrupted in every phase: the whole of `./slipway up`."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.supervisor.processes import (
    ROOT,
    Supervisor,
    alive,
    clean_environ,
    faketime,
    running,
    until,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PHASES = [
    "Installing the installer",
    r"Installing \d+ Python packages",
    "Making the database",
    "Collecting the static files",
    "Bringing the database schema up to date",
]
START_SECONDS = 400


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the tracked files in a folder with a space."""
    folder = tmp_path_factory.mktemp("first") / "with space"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@contextmanager
def up(checkout: Path, **environ: str) -> Iterator[Supervisor]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [str(checkout / "slipway"), "up"]
    path = os.environ["PATH"].replace(f"{ROOT}/.venv/bin:", "")
    environ = {"SLIPWAY_PORT": port, "PYTHONPATH": "", "PATH": path, **environ}
    with running(command, checkout.parent, **environ) as started:
        started.port = int(port)
        yield started


def ready(started: Supervisor) -> None:
    until(
        lambda: "slipway: Ready after" in started.text or started.process.poll() is not None,
        START_SECONDS,
        lambda: started.text,
    )
    assert "slipway: Ready after" in started.text, started.text


def press_ctrl_c(started: Supervisor, times: int = 1) -> int:
    """Do what the terminal does: signal the whole foreground group."""
    for _ in range(times):
        os.killpg(started.process.pid, signal.SIGINT)
    return started.process.wait(90)


def status(started: Supervisor, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", started.port, timeout=10)
    connection.request("GET", path)
    return connection.getresponse().status


def test_every_phase_may_be_interrupted_and_the_next_start_repairs_it(checkout):
    """Buys: an impatient first start breaks nothing (installs twice, about a minute)."""
    for phase in PHASES:
        with up(checkout) as started:
            until(
                lambda: re.search(phase, started.text) or started.process.poll() is not None,  # noqa: B023
                START_SECONDS,
                lambda: started.text,
            )
            assert re.search(phase, started.text), started.text
            assert press_ctrl_c(started) == 130, started.text
            assert "Traceback" not in started.text, started.text
        until(lambda: not alive(f"{checkout}/.venv"), 15, lambda: str(alive(str(checkout))))
    with up(checkout) as started:
        ready(started)
        text = started.text
        assert "First admin: admin@slipway.local" in text
        assert re.search(r"One-time password: \S+", text)
        assert status(started, "/readyz") == 200
        assert press_ctrl_c(started) == 0
        assert "Traceback" not in started.text
    assert not list((checkout / "build").glob("node-*"))
    assert not alive(f"{checkout}/.venv")


def test_a_second_start_takes_seconds_and_makes_no_second_admin(checkout):
    with up(checkout) as started:
        ready(started)
        assert "First admin" not in started.text
        assert "Installing" not in started.text
        assert "Collecting" not in started.text
        seconds = float(re.search(r"Ready after ([\d.]+) s", started.text)[1])
        assert seconds < 20  # 6 s on a quiet machine
        assert press_ctrl_c(started) == 0


@pytest.mark.kills
def test_kill_9_leaves_nothing_and_the_next_start_goes_on(checkout):
    """Buys: the pool children of the worker end as well (starts twice)."""
    with up(checkout) as started:
        ready(started)
        started.process.kill()
        until(lambda: not alive(f"{checkout}/.venv"), 20, lambda: str(alive(str(checkout))))
    with up(checkout) as started:
        ready(started)
        assert press_ctrl_c(started) == 0


def test_a_clock_one_hour_off_breaks_nothing(checkout):
    for shift in ("+1h", "-1h"):
        with up(checkout, LD_PRELOAD=faketime(), FAKETIME=shift) as started:
            ready(started)
            assert status(started, "/healthz") == 200
            assert press_ctrl_c(started) == 0


def test_manage_keeps_standard_output_for_its_command(checkout):
    """Buys: `createtoken` can be used in a script while no portal runs (starts the database)."""
    words = ["createtoken", "--user", "admin@slipway.local", "--name", "script"]
    environ = clean_environ(PYTHONPATH="")
    command = [str(checkout / "slipway"), "manage", *words]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"slw_\S+\n", done.stdout)
