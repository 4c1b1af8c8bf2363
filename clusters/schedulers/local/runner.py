"""Runs one local job to its end and writes down how it ended: `python3 -I runner.py run FOLDER`.

Copied beside the jobs and run by the system's Python as the job's own user, so it is standard
library only. FOLDER is the portal's and holds `spec.json`, and `cancel` when the job is to end;
FOLDER/run is the job's own: the command begins in FOLDER/run/work, which it may empty, and this
program writes `exit.json` there by rename when it has ended. FOLDER/pid.json is there from the
beginning and the job cannot remove it: its lock makes a second runner leave at once, and it gets a
line before the command starts and one after; the last whole line counts.

`runner.py signal FOLDER NUMBER` signals the job's session, or with 0 asks its runner to end it.
It runs as the job's user too, so that what the job wrote cannot name anybody else's process.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

KILL_AFTER_SECONDS = 10
LONGEST_REPORT = 4096
PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans of the job become this program's children
PARENT, SESSION, TICKS = 1, 3, 19  # numbers in /proc/PID/stat, counted after the name: proc(5)
LONGEST_WAIT_SECONDS = 3600
WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
FILES = (
    (0, os.devnull, os.O_RDONLY),
    (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
)


def main(verb: str, folder: str, *rest: str) -> None:
    """Do what the verb says."""
    own = Path(folder) / "run"
    own.chmod(0o700)  # the job may have closed it
    os.chdir(own)
    if verb == "run":
        run()
    else:
        deliver(int(rest[0]), own=os.fsencode(own))


def run() -> None:
    """Run the job of the folder, unless it has run or is running."""
    lock = os.open("../pid.json", os.O_WRONLY | os.O_APPEND)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    if os.fstat(lock).st_size or Path("exit.json").exists():
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
        "ticks": stat_of(os.getpid(), TICKS),
        "child": None,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "started_at": started_at,
    }
    add(lock, mark)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        child = start(spec)
    except OSError as error:
        with Path("stderr").open("a") as file:
            file.write(f"slipway: {spec['argv'][0]}: {error.strerror}\n")
        code = 127 if isinstance(error, FileNotFoundError) else 126
        end(started_at, ending="exit_code", code=code)
        return
    add(lock, {**mark, "child": child})
    watch(child, started_at, spec)


def deliver(number: int, *, own: bytes) -> None:
    """Signal the job's session, or with 0 its runner; what is gone is fine.

    KILL after the mark `cancel` ends the runner too: it has had its time.
    """
    try:
        mark = json.loads(last_line(Path("../pid.json")))
        runner, child = int(mark["runner"]), int(mark["child"] or 0)
    except (OSError, ValueError, KeyError, TypeError):
        return
    if stat_of(runner, TICKS) != mark.get("ticks"):
        signal_session(child, signal.SIGKILL)  # nobody looks after it any more
        sweep(own)
        return
    if number:
        signal_session(child, number)
    with contextlib.suppress(OSError):
        if number == 0:
            os.kill(runner, signal.SIGTERM)
        elif number == signal.SIGKILL and Path("../cancel").exists():
            os.kill(runner, signal.SIGKILL)
        os.kill(runner, signal.SIGCONT)  # the job may have put it to sleep


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
    Path(spec["folder"]).mkdir(exist_ok=True)
    os.chdir(spec["folder"])
    os.execvpe(spec["argv"][0], spec["argv"], spec["environment"])  # noqa: S606 - that is the job


def watch(child: int, started_at: float, spec: dict[str, Any]) -> None:
    """Wait for the end; at the limit, or when told, end the session: TERM, then KILL."""
    until = time.monotonic() + spec["time_limit_seconds"]
    ending = None
    while True:
        left = min(max(0.0, until - time.monotonic()), LONGEST_WAIT_SECONDS)
        got = signal.sigtimedwait(WATCHED, left)
        status = reap(child)
        if status is not None:
            break
        told = got is not None and got.si_signo != signal.SIGCHLD
        if ending is None and (told or time.monotonic() >= until):
            ending = "user" if told else "time_limit"
            signal_session(child, signal.SIGTERM)
            until = time.monotonic() + KILL_AFTER_SECONDS
        elif ending is not None and time.monotonic() >= until:
            signal_session(child, signal.SIGKILL)
            until = time.monotonic() + KILL_AFTER_SECONDS
    clear(child)
    Path(spec["folder"]).parent.chmod(0o700)  # the job may have closed it
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    own = "completed" if code == 0 else "exit_code"
    end(started_at, ending=ending or own, code=code, number=number)


def reap(child: int) -> int | None:
    """Take the status of whatever has ended; return the command's, if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status
            if pid == child:
                status = found
    return status


def clear(session: int) -> None:
    """Kill what the command left behind: in its session, or away from it but still below us."""
    until = time.monotonic() + KILL_AFTER_SECONDS
    while time.monotonic() < until:
        signal_session(session, signal.SIGKILL)
        left = processes(PARENT, os.getpid())
        if not left:
            return
        kill(left, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.1)
        reap(session)


def sweep(own: bytes) -> None:
    """Kill what has the job's folder in its environment, whatever session it made."""
    until = time.monotonic() + KILL_AFTER_SECONDS
    while time.monotonic() < until:
        left = [pid for pid in all_processes() if own in environment_of(pid)]
        if not left:
            return
        kill(left, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)


def signal_session(session: int, number: int) -> None:
    """Send the signal to every process of the session."""
    if session > 1:
        kill(processes(SESSION, session), number)


def kill(pids: list[int], number: int) -> None:
    """Send the signal to the processes; those that are gone, or another user's, are passed over."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def processes(field: int, value: int) -> list[int]:
    """Return the processes whose `stat_of` that field is the value."""
    return [pid for pid in all_processes() if stat_of(pid, field) == value]


def all_processes() -> list[int]:
    """Return the processes of the machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def environment_of(pid: int) -> bytes:
    """Return with which environment a process began; nothing of another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def stat_of(pid: int, field: int) -> int | None:
    """Return a number after the name in /proc/PID/stat; a name may be no text at all."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
        return int(line.rsplit(b")", 1)[1].split()[field])
    except (OSError, IndexError, ValueError):
        return None


def end(
    started_at: float, *, ending: str, code: int | None = None, number: int | None = None
) -> None:
    """Write how the job ended."""
    times = {"started_at": started_at, "ended_at": time.time()}
    write("exit.json", {"ending": ending, "code": code, "signal": number, **times})


def add(file: int, value: dict[str, Any]) -> None:
    """Add a line to an open file, in one write."""
    os.write(file, json.dumps(value).encode() + b"\n")


def last_line(path: Path) -> bytes:
    """Return the last whole line of what is a short file if nobody tampered with it; or nothing."""
    with path.open("rb") as file:
        return b"".join(file.read(LONGEST_REPORT).split(b"\n")[-2:-1])


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
