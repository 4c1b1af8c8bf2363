"""PostgreSQL and Valkey for the tests: the embedded ones, in a folder that is thrown away."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60


def start() -> None:
    """Start both, name them in DATABASE_URL and REDIS_URL, and stop them when this process ends.

    Idempotent: a variable that is set already is left alone.
    """
    if "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="slipway-tests-"))
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "REDIS_URL") and not name.startswith("SLIPWAY_")
    }
    environ |= {"SLIPWAY_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    output = folder / "output"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig=TERM", "--"),
                *(sys.executable, "-P", "-m", "portal.supervisor", "services", "--throwaway"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd=ROOT,
            start_new_session=True,
        )
    atexit.register(_stop, process, folder)
    for name, value in _addresses(process, output).items():
        os.environ.setdefault(name.upper(), value)


def _addresses(process: "subprocess.Popen[bytes]", output: Path) -> dict[str, str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for line in output.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                found: dict[str, str] = json.loads(line)
                return found
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
    raise RuntimeError(f"the services of the tests did not start:\n{output.read_text()}")


def _stop(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    process.terminate()
    process.wait(timeout=30)
    shutil.rmtree(folder, ignore_errors=True)
