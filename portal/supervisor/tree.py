"""The tree of processes: started, watched, restarted, stopped in reverse order.

One thread waits on the children's output and on signals. Nothing outlives the supervisor: each
child asks the kernel for a signal at its death, and a watcher ends the process groups when its
pipe closes, whatever ended the supervisor.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any, cast

from portal import env
from portal.env_parsers import REPOSITORY
from portal.supervisor.terminal import Failure, line, say

LONGEST_BACK_OFF_SECONDS = 30.0
STEADY_SECONDS = 60.0  # alive for so long: the next failure starts at the shortest back-off
WORRY_SECONDS = 30.0
LONGEST_LINE_BYTES = 64 << 10

# Reads "add SIGNAL GROUP" and "drop SIGNAL GROUP" lines; "bye" or the end of the pipe ends it.
WATCHER = """
trap '' INT TERM HUP QUIT
groups=
while read -r act signal group; do
  case $act in
    add) groups="$signal:$group $groups" ;;
    drop)
      kept=
      for g in $groups; do [ "$g" = "$signal:$group" ] || kept="$kept $g"; done
      groups=$kept
      ;;
    bye) exit 0 ;;
  esac
done
for g in $groups; do kill -s "${g%:*}" -- "-${g#*:}"; done 2>/dev/null
tries=0
while [ $tries -lt 50 ]; do
  left=; for g in $groups; do kill -s 0 -- "-${g#*:}" 2>/dev/null && left=1; done
  [ "$left" ] || exit 0
  sleep 0.1; tries=$((tries + 1))
done
for g in $groups; do kill -s KILL -- "-${g#*:}"; done 2>/dev/null
"""


class Stopped(Exception):
    """Somebody asked to stop, by Ctrl-C or a signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What runs: its command, when it counts as ready, how it is asked to stop."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool] = lambda: True
    ready_seconds: float = 90.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    environ: Mapping[str, str] = field(default_factory=dict)


class Child:
    """One running program, and when to start it again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.restart_at: float | None = None
        self.back_off_seconds = 1.0

    def spawn(self) -> "subprocess.Popen[bytes]":
        """Start the program in a process group of its own."""
        program = self.program
        self.process = subprocess.Popen(
            [*die_with_parent(program.stop_signal), *program.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            cwd=REPOSITORY,
            env=_environ(program),
        )
        self.started_at, self.restart_at = time.monotonic(), None
        return self.process

    def plan_restart(self) -> float:
        """Set the instant of the next start and give the seconds until then."""
        now = time.monotonic()
        if now - self.started_at > STEADY_SECONDS:
            self.back_off_seconds = 1.0
        wait = self.back_off_seconds
        self.restart_at = now + wait
        self.back_off_seconds = min(wait * 2, LONGEST_BACK_OFF_SECONDS)
        return wait


class Tree:
    """All children of one supervisor; a context that stops them at its end."""

    def __init__(self, *, keep: tuple[int, ...] = ()) -> None:
        """`keep`: descriptors that stay open until the last process is gone, such as a lock."""
        self._children: list[Child] = []
        self._keep = keep
        self._asked = 0
        self._last_signal = 0
        self._stopping = False
        self._selector = selectors.DefaultSelector()
        self._partial: dict[int, bytes] = {}
        self._handlers: dict[int, Any] = {}
        self._watcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Tree":
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            self._handlers[number] = signal.signal(number, self._on_signal)
        self._start_watcher()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._tell_watcher("bye")
            if self._watcher:
                self._watcher.wait()
            signal.set_wakeup_fd(-1)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            os.close(self._wake_read)
            os.close(self._wake_write)

    def start(self, program: Program) -> None:
        """Start a program without waiting for it."""
        child = Child(program)
        self._children.append(child)
        self._spawn(child)

    def wait_ready(self) -> None:
        """Wait until every program is ready. Raises `Failure` when one ends or takes too long."""
        for child in self._children:
            while not child.program.ready():
                code = child.process.poll() if child.process else None
                if code is not None:
                    self._pump(0.2)
                    raise Failure(
                        f"{child.program.name} ended ({_how(code)}) before it was ready; "
                        "its last lines above say why"
                    )
                if time.monotonic() - child.started_at > child.program.ready_seconds:
                    raise Failure(
                        f"{child.program.name} was not ready after "
                        f"{child.program.ready_seconds:.0f} s; its lines above may say why"
                    )
                self._pump(0.05)

    def wait_until(self, is_so: Callable[[], bool], *, seconds: float, what: str) -> None:
        """Wait for a condition while the programs run. Raises `Failure` after `seconds`."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise Failure(f"{what} after {seconds:.0f} s; the lines above may say why")
            self._restart_ended()
            self._pump(0.1)

    def run(self, program: Program, *, capture: bool = False, afresh: bool = False) -> str:
        """Run a command to its end, its output prefixed; with `capture`, give its standard output.

        With `afresh` only a wish to stop that comes from now on ends it. Raises `Failure` when it
        fails, `Stopped` when somebody asks to stop.
        """
        if afresh:
            self._asked = self._last_signal = 0
        process = subprocess.Popen(
            [*die_with_parent(signal.SIGTERM), *program.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if capture else subprocess.STDOUT,
            process_group=0,
            cwd=REPOSITORY,
            env=_environ(program),
        )
        kept = bytearray()
        self._read_from(process, program.name, kept if capture else None)
        try:
            while process.poll() is None:
                self._pump(0.5)
            self._pump(0)
        finally:
            _kill_group(process)
        if process.returncode:
            raise Failure(
                f"{program.name} failed ({_how(process.returncode)}); see the lines above"
            )
        return kept.decode()

    def foreground(self, command: list[str]) -> int:
        """Run a command on the terminal while the programs go on; give its exit status."""
        process = subprocess.Popen([*die_with_parent(signal.SIGTERM), *command])
        while process.poll() is None:
            self._pump(0.5, heed=False)
            if self._last_signal in (signal.SIGTERM, signal.SIGHUP):
                process.send_signal(self._last_signal)
            self._asked = self._last_signal = 0  # Ctrl-C reaches the command by itself
        return process.returncode

    def watch(self, worry: Callable[[], str | None] = lambda: None) -> None:
        """Restart what ends, until `Stopped` is raised; say what `worry` has found new."""
        said, due = None, time.monotonic()
        while True:
            self._restart_ended()
            if time.monotonic() >= due:
                found, due = worry(), time.monotonic() + WORRY_SECONDS
                if found and not said:
                    say(found)
                said = found
            self._pump(1.0)

    def stop(self) -> None:
        """Stop all programs, last started first."""
        self._stopping = True
        for child in reversed(self._children):
            self._stop(child)
        self._children.clear()

    def _spawn(self, child: Child) -> None:
        process = child.spawn()
        self._read_from(process, child.program.name, None)
        self._tell_watcher(f"add {_short(child.program.stop_signal)} {process.pid}")

    def _forget(self, child: Child) -> None:
        if child.process:
            _kill_group(child.process)
            self._tell_watcher(f"drop {_short(child.program.stop_signal)} {child.process.pid}")
            child.process = None

    def _stop(self, child: Child) -> None:
        if child.process is None:
            return
        begun = time.monotonic()
        child.process.send_signal(child.program.stop_signal)
        while (
            child.process.poll() is None and time.monotonic() - begun < child.program.stop_seconds
        ):
            self._pump(0.1)
        if child.process.poll() is None:
            say(f"{child.program.name} did not stop in {child.program.stop_seconds:.0f} s: killed")
        process = child.process
        self._forget(child)
        process.wait()
        self._pump(0)

    def _restart_ended(self) -> None:
        for child in self._children:
            if child.process and (code := child.process.poll()) is not None:
                self._forget(child)
                wait = child.plan_restart()
                say(f"{child.program.name} ended ({_how(code)}); starting it again in {wait:.0f} s")
            elif child.restart_at and time.monotonic() >= child.restart_at:
                self._spawn(child)
        if self._watcher and self._watcher.poll() is not None:
            self._start_watcher()

    def _pump(self, seconds: float, *, heed: bool = True) -> None:
        """Pass on output for at most `seconds`; then raise `Stopped` if somebody asked to."""
        due = [c.restart_at - time.monotonic() for c in self._children if c.restart_at]
        for key, _ in self._selector.select(max(0.0, min([seconds, *due]))):
            if key.data is None:
                os.read(self._wake_read, 4096)
            else:
                self._pass_on(key)
        if heed:
            self._heed()

    def _heed(self) -> None:
        if self._asked > 1:
            say("Killing everything at once.")
            for child in self._children:
                self._forget(child)
            raise SystemExit(130)
        if self._asked and not self._stopping:
            self._stopping = True
            raise Stopped

    def _read_from(
        self, process: "subprocess.Popen[bytes]", name: str, kept: bytearray | None
    ) -> None:
        assert process.stdout is not None  # noqa: S101 - opened with a pipe
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, (name, kept))

    def _pass_on(self, key: selectors.SelectorKey) -> None:
        name, kept = key.data
        try:
            piece = os.read(key.fd, LONGEST_LINE_BYTES)
        except BlockingIOError:
            return
        if kept is not None:
            kept += piece
        else:
            whole = self._partial.pop(key.fd, b"") + piece
            *lines, rest = whole.split(b"\n")
            if rest and piece and len(rest) < LONGEST_LINE_BYTES:
                self._partial[key.fd] = rest
            elif rest:
                lines.append(rest)
            for text in lines:
                line(f"{name:<8} | {text.decode(errors='replace')}")
        if not piece:
            self._selector.unregister(key.fileobj)
            cast(IO[bytes], key.fileobj).close()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._asked += 1
            self._last_signal = number

    def _start_watcher(self) -> None:
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, "slipway-watcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._keep,
        )
        for child in self._children:
            if child.process:
                name = _short(child.program.stop_signal)
                self._tell_watcher(f"add {name} {child.process.pid}")

    def _tell_watcher(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            if self._watcher and self._watcher.stdin:
                self._watcher.stdin.write(f"{line}\n".encode())
                self._watcher.stdin.flush()


def die_with_parent(number: signal.Signals) -> list[str]:
    """Give the prefix that makes the kernel signal a command when its parent is gone."""
    setpriv = shutil.which("setpriv")
    return [setpriv, f"--pdeathsig={_short(number)}", "--"] if setpriv else []


def _environ(program: Program) -> dict[str, str]:
    # uv leaves it to the first import to compile a package, so that must be allowed to keep it.
    return env.child_environ(
        PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="", MALLOC_ARENA_MAX="2", **program.environ
    )


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _short(number: signal.Signals) -> str:
    return number.name.removeprefix("SIG")


def _how(code: int) -> str:
    if code < 0:
        return f"by {signal.Signals(-code).name}"
    return f"exit status {code}"
