"""A portal started by `./slipway up` from a clone of its own, as a newcomer would."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[2]
PASSWORD, TOKEN = "bench-horse-battery-staple", "slw_bench_" + "b" * 40
EMAIL = "admin@slipway.local"
START_SECONDS = 600


@dataclass
class Running:
    process: "subprocess.Popen[bytes]"
    url: str
    seconds: float
    """From the command to the line that says ready."""

    def tree(self) -> list[psutil.Process]:
        """The supervisor and everything below it."""
        top = psutil.Process(self.process.pid)
        return [top, *top.children(recursive=True)]


def clone(folder: Path) -> Path:
    """Clone what is committed into an empty folder."""
    target = folder / "clone of slipway"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(target)], check=True)
    return target


def clean_environment(folder: Path, *, caches: bool) -> dict[str, str]:
    """The environment of a person who has set nothing, without caches of earlier installs."""
    keep = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "HOME", "TERM") or name.startswith(("PIP_", "UV_", "npm_"))
    }
    if caches:
        return keep
    off = {
        "UV_NO_CACHE": "1",
        "PIP_NO_CACHE_DIR": "1",
        "npm_config_cache": str(folder / "npm-cache"),
    }
    return {**keep, **off}


@contextmanager
def up(checkout: Path, environment: dict[str, str]) -> Iterator[Running]:
    """Run `./slipway up` until the block ends; stop it by Ctrl-C."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **environment,
        "SLIPWAY_PORT": str(port),
        "SLIPWAY_BOOTSTRAP_ADMIN_PASSWORD": PASSWORD,
        "SLIPWAY_BOOTSTRAP_TOKEN": TOKEN,
    }
    output = checkout / "up.log"
    started = time.monotonic()
    with output.open("wb") as sink:
        process = subprocess.Popen(
            ["./slipway", "up"], cwd=checkout, env=environment, stdout=sink, stderr=sink
        )
    try:
        seconds = _until_ready(process, output, started)
        yield Running(process, f"http://127.0.0.1:{port}", seconds)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()


def _until_ready(process: "subprocess.Popen[bytes]", output: Path, started: float) -> float:
    while time.monotonic() - started < START_SECONDS:
        if re.search(rb"slipway: Ready", output.read_bytes()):
            return time.monotonic() - started
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError(f"the portal did not start:\n{output.read_text()[-4000:]}")


@contextmanager
def signed_in(running: Running) -> Iterator[httpx.Client]:
    """A browser's session of the admin."""
    with httpx.Client(base_url=running.url, timeout=30, follow_redirects=True) as browser:
        page = browser.get("/account/login/")
        token = page.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        form = {"login": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": token}
        browser.post("/account/login/", data=form, headers={"Referer": f"{running.url}/"})
        yield browser


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Processor time that these processes have used, of users and of the kernel."""
    return sum(sum(p.cpu_times()[:2]) for p in processes if p.is_running())


def remove(folder: Path) -> None:
    """Delete a folder of the bench."""
    shutil.rmtree(folder, ignore_errors=True)
