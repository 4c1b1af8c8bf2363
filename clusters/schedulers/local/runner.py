"""Runs one local job to its end and writes down how it ended: `python3 -I runner.py run FOLDER`.

Copied beside the jobs and run by the system's Python as the job's own user, so it is standard
library only. FOLDER is the portal's and holds `spec.json`, and `cancel` when the job is to end;
FOLDER/run is the job's own: this program writes `pid.json` there before the command starts and
`exit.json` when it has ended, both by rename. A lock makes a second runner leave at once.

`runner.py signal FOLDER NUMBER` signals the job's session, or with 0 asks its runner to end it.
It runs as the job's user too, so that what the job wrote cannot name anybody else's process.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

KILL_AFTER_SECONDS = 10
LONGEST_WAIT_SECONDS = 3600
WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
FILES = (
    (0, os.devnull, os.O_RDONLY),
    (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
)


def main(verb: str, folder: str, *rest: str) -> None:
    """Do what the verb says."""
    os.chdir(Path(folder) / "run")
    if verb == "run":
        run()
    else:
        deliver(int(rest[0]))


def run() -> None:
    """Run the job of the folder, unless it has run or is running."""
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    if Path("exit.json").exists() or Path("pid.json").exists():
        return  # it has run; a runner that died is the portal's to report
    spec = json.loads(Path("../spec.json").read_text())
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    started_at = time.time()
    if Path("../cancel").exists():
        end(started_at, ending="user")
        return
    # Written before the start, so that nothing can run that nobody knows of.
    mark = {
        "runner": os.getpid(),
        "ticks": stat_of(os.getpid(), 19),
        "child": None,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "started_at": started_at,
    }
    write("pid.json", mark)
    try:
        child = start(spec)
    except OSError as error:
        with Path("stderr").open("a") as file:
            file.write(f"slipway: {spec['argv'][0]}: {error.strerror}\n")
        code = 127 if isinstance(error, FileNotFoundError) else 126
        end(started_at, ending="exit_code", code=code)
        return
    write("pid.json", {**mark, "child": child})
    watch(child, started_at, spec["time_limit_seconds"])


def deliver(number: int) -> None:
    """Signal the job's session, or with 0 its runner; what is gone is fine."""
    try:
        mark = json.loads(Path("pid.json").read_text())
        runner, child = int(mark["runner"]), int(mark["child"] or 0)
    except (OSError, ValueError, KeyError, TypeError):
        return
    if stat_of(runner, 19) != mark.get("ticks"):
        number = signal.SIGKILL  # nobody looks after the session any more
    if number:
        signal_session(child, number)
    else:
        with contextlib.suppress(OSError):
            os.kill(runner, signal.SIGTERM)


def start(spec: dict[str, Any]) -> int:
    """Start the command as the leader of a session of its own; return its process id."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(spec)
        except OSError as error:
            os.write(written, str(error.errno).encode())
        os._exit(127)
    os.close(written)
    with os.fdopen(read) as answer:
        failed = answer.read()
    if failed:
        os.waitpid(child, 0)
        raise OSError(int(failed), os.strerror(int(failed)))
    return child


def become(spec: dict[str, Any]) -> None:
    """Turn this process into the command; returns only by raising `OSError`."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
    for number, name, flags in FILES:
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        if opened > 2:
            os.close(opened)
    os.chdir(spec["folder"])
    os.execvpe(spec["argv"][0], spec["argv"], spec["environment"])  # noqa: S606 - that is the job


def watch(child: int, started_at: float, limit_seconds: float) -> None:
    """Wait for the end; at the limit, or when told, end the session: TERM, then KILL."""
    until = time.monotonic() + limit_seconds
    ending = None
    while True:
        left = min(max(0.0, until - time.monotonic()), LONGEST_WAIT_SECONDS)
        got = signal.sigtimedwait(WATCHED, left)
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        told = got is not None and got.si_signo != signal.SIGCHLD
        if ending is None and (told or time.monotonic() >= until):
            ending = "user" if told else "time_limit"
            signal_session(child, signal.SIGTERM)
            until = time.monotonic() + KILL_AFTER_SECONDS
        elif ending is not None and time.monotonic() >= until:
            signal_session(child, signal.SIGKILL)
            until = time.monotonic() + KILL_AFTER_SECONDS
    signal_session(child, signal.SIGKILL)  # what the command left behind in its session
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    own = "completed" if code == 0 else "exit_code"
    end(started_at, ending=ending or own, code=code, number=number)


def signal_session(session: int, number: int) -> None:
    """Send the signal to every process of the session."""
    if session <= 1:
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and stat_of(int(entry.name), 3) == session:
            with contextlib.suppress(OSError):
                os.kill(int(entry.name), number)


def stat_of(pid: int, field: int) -> int | None:
    """Return a number after the name in /proc/PID/stat (proc(5)): 3 session, 19 start in ticks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        return int(text.rsplit(")", 1)[1].split()[field])
    except (OSError, IndexError, ValueError):
        return None


def end(
    started_at: float, *, ending: str, code: int | None = None, number: int | None = None
) -> None:
    """Write how the job ended."""
    times = {"started_at": started_at, "ended_at": time.time()}
    write("exit.json", {"ending": ending, "code": code, "signal": number, **times})


def write(name: str, value: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    new = Path(f"{name}.new")
    with new.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
