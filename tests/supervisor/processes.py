"""A supervisor of stand-in children in a process of its own, and ways to look at what runs."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SUPERVISOR = """
import json, os, signal, sys
from pathlib import Path
from portal.supervisor import terminal
from portal.supervisor.tree import Program, Stopped, Tree

given = json.loads(sys.argv[1])
keep = (os.open(given["lock"], os.O_RDWR | os.O_CREAT),) if given["lock"] else ()
if keep:
    import fcntl
    fcntl.flock(keep[0], fcntl.LOCK_EX)
try:
    with Tree(keep=keep) as tree:
        for word in given["programs"]:
            ready = Path(word.pop("ready")) if "ready" in word else None
            tree.start(Program(
                name=word["name"],
                command=("/bin/sh", "-c", word["script"]),
                ready=ready.exists if ready else lambda: True,
                stop_seconds=word.get("stop_seconds", 10),
            ))
        tree.wait_ready()
        terminal.say("ready")
        tree.watch()
except Stopped:
    terminal.say("stopped")
except terminal.Failure as failure:
    terminal.fail(str(failure))
    sys.exit(1)
"""


class Supervisor:
    """One running supervisor; `text` is what it printed so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: Path) -> None:
        self.process = process
        self.output = output

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def says(self, text: str, seconds: float = 15) -> None:
        until(lambda: text in self.text, seconds, lambda: f"{text!r} in:\n{self.text}")


@contextmanager
def supervisor(folder: Path, *programs: dict, lock: Path | None = None) -> Iterator[Supervisor]:
    """Run a supervisor of shell scripts: dictionaries with name, script, ready, stop_seconds."""
    given = json.dumps({"programs": programs, "lock": str(lock) if lock else None})
    with running([sys.executable, "-c", SUPERVISOR, given], folder) as started:
        yield started


@contextmanager
def running(command: list[str], folder: Path, **environ: str) -> Iterator[Supervisor]:
    """Run a command in a process group of its own, like a terminal does, its output in a file."""
    output = folder / f"output-{time.monotonic_ns()}"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=clean_environ(**environ),
            process_group=0,
        )
    try:
        yield Supervisor(process, output)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


def clean_environ(**changes: str) -> dict[str, str]:
    """The environment without the tests' own settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "REDIS_URL") and not name.startswith("SLIPWAY_")
    }
    return {**kept, "PYTHONPATH": str(ROOT), **changes}


def until(is_so: Callable[[], object], seconds: float, what: Callable[[], str] | str) -> None:
    """Wait for a condition; fail with `what` after the deadline."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        pause.wait(0.02)


def alive(mark: str) -> list[str]:
    """The command lines of all processes in which `mark` occurs, this one excepted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark in line and state != "Z" and int(folder.name) != os.getpid():
            found.append(f"{folder.name} {line[:120]}")
    return found


def faketime() -> str:
    """The library that shifts the clock of what is started with it; skips without it."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        if os.environ.get("SLIPWAY_TEST_STRICT") == "1":
            pytest.fail("faketime is not installed and SLIPWAY_TEST_STRICT=1")
        pytest.skip("faketime is not installed")
    return str(library)
