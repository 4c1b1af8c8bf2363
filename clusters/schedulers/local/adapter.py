"""The local scheduler: one folder a job, started in the order of submission."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal as signals
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clusters.schedulers.contract import (
    Ending,
    ExternalId,
    NodeSeen,
    Resources,
    Seen,
    Signal,
    Stage,
    SubmitRequest,
)
from clusters.schedulers.local import files, reports, runner
from clusters.schedulers.local import machine as machines
from clusters.schedulers.local.machine import Machine, Slots
from portal.core.errors import Rejected, Unavailable

RUNNER = Path(runner.__file__)
AGENT = Path(__file__).parents[2] / "agent" / "slipway_agent.py"
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STREAMS = ("stdout", "stderr")
_KEY = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9-]{0,99}\Z")


class LocalScheduler:
    """Runs jobs on this machine, each as a detached session that outlives the portal.

    `folder` belongs to the portal's user, mode 0711. With `wall` (as root) each job runs as the
    user whose number `SubmitRequest.owner` gives, in a folder that no other user may enter. Jobs
    start strictly in the order in which they were submitted: the first that does not fit holds up
    the others, so a large one is never starved.
    """

    def __init__(
        self,
        *,
        folder: Path,
        wall: bool,
        machine: Machine | None = None,
        boot_id: str | None = None,
        portal_url: str = "",
    ) -> None:
        self.folder, self.wall, self.portal_url = folder, wall, portal_url
        self.machine = machine or machines.this_machine()
        self.boot_id = boot_id or machines.boot_id()

    def submit(self, request: SubmitRequest) -> ExternalId:
        """Write the job down and start it if there is room. Raises `Rejected`, `Unavailable`."""
        why = machines.impossible(request.resources, self.machine)
        if why:
            raise Rejected("never_fits", why)
        if self.wall and not request.owner.isdecimal():
            raise Rejected("no_user", "The cluster maps this team to no user of the machine.")
        with _as_unavailable():
            self._prepare()
            folder = self._of(request.key)
            if not (folder / "spec.json").exists():
                self._write_down(folder, request)
            self._start_waiting()
        return request.key

    def observe(self, keys: Collection[str]) -> Mapping[str, Seen]:
        """Read the folders of the jobs; start what waits and fits now."""
        with _as_unavailable():
            self._prepare()
            seen = {key: found for key in keys if (found := self._look(key)) is not None}
            for key, found in seen.items():
                live = self.folder / "live" / key
                if found.stage is Stage.ENDED and live.exists():
                    self._send_courier(self._of(key))
                    live.unlink(missing_ok=True)
            self._start_waiting()
        return seen

    def cancel(self, key: str, signal: Signal | None = None) -> None:
        """Signal the job's session, or end it: TERM, after 10 s KILL."""
        with _as_unavailable():
            folder = self._of(key)
            spec = files.read(folder / "spec.json")
            if spec is None or reports.end_of(folder) is not None:
                return
            if signal is None:
                (folder / "cancel").touch()
            if reports.pid_of(folder) is None:
                self._start_waiting()  # so that a runner comes and finds the mark
                return
            number = int(signals.Signals[f"SIG{signal}"]) if signal else 0
            subprocess.run(  # noqa: S603 - our own runner
                self._as_owner(spec, "signal", str(folder), str(number)),
                env={"PATH": PATH},
                check=True,
                timeout=30,
            )

    def settle(self, keys: Collection[str], *, seconds: float) -> None:
        """Wait for the ends of the jobs' runners."""
        until = time.monotonic() + seconds
        with _as_unavailable():
            for key in keys:
                folder = self._of(key)
                pid = reports.pid_of(folder)
                if pid and "runner" in pid and reports.end_of(folder) is None:
                    machines.wait_for_end(pid["runner"], seconds=max(0.0, until - time.monotonic()))

    def forget(self, key: str) -> None:
        """Delete the job's folder, its checkpoints with it; one that lives is left alone."""
        folder = self._of(key)
        if (self.folder / "live" / key).exists():
            return
        with _as_unavailable(), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def nodes(self) -> Sequence[NodeSeen]:
        """Return this machine, with what live jobs occupy."""
        with _as_unavailable():
            self._prepare()
            taken = [slots for _key, slots in self._live() if slots is not None]
        return [
            NodeSeen(
                name=socket.gethostname(),
                state="ready",
                cpus=self.machine.cpus,
                memory_bytes=self.machine.memory_bytes,
                gpus=self.machine.gpus,
                gpu_type=self.machine.gpu_type,
                cpus_allocated=sum(slots.cpus for slots in taken),
                gpus_allocated=sum(len(slots.gpus) for slots in taken),
            )
        ]

    def read_log(self, key: str, cursor: str, limit: int) -> tuple[bytes, str]:
        """Return output from a cursor `stdout:OFFSET` or `stderr:OFFSET`, and the next one."""
        stream, _colon, text = (cursor or "stdout:0").partition(":")
        offset = int(text)
        if stream not in STREAMS:
            raise Rejected("no_stream", "There are the streams stdout and stderr.")
        with _as_unavailable():
            opened = reports.open_output(self._of(key), stream)
            if opened is None:
                return b"", cursor
            with os.fdopen(opened, "rb") as file:
                file.seek(offset)
                data = file.read(limit)
        return data, f"{stream}:{offset + len(data)}"

    def render(self, request: SubmitRequest) -> str:
        """Return the script that will run."""
        return request.script

    def _of(self, key: str) -> Path:
        if not _KEY.match(key):
            raise Rejected("bad_key", f"{key[:100]!r} is no key of a job.")
        return self.folder / key

    def _prepare(self) -> None:
        missing = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        (self.folder / "live").mkdir(parents=True, exist_ok=True)
        if self.wall:
            for path in (*missing, self.folder):
                path.chmod(0o711)
            (self.folder / "live").chmod(0o700)
            self._check_way()
        for source, name in ((RUNNER, "runner.py"), (AGENT, "agent.py")):
            files.keep_copy(source, self.folder / name)

    def _check_way(self) -> None:
        """Raise `Unavailable` when the users of jobs cannot come to their folders."""
        closed = next((p for p in self.folder.parents if not p.stat().st_mode & 0o001), None)
        if closed is not None:
            message = f"The users of jobs cannot enter {closed}; run chmod a+x on it."
            raise Unavailable("local_unavailable", message)

    def _write_down(self, folder: Path, request: SubmitRequest) -> None:
        """Make the job exist: `spec.json` comes last and by rename."""
        owner = int(request.owner) if self.wall else os.geteuid()
        folder.mkdir(mode=0o711, exist_ok=True)
        run = folder / "run"
        run.mkdir(mode=0o700, exist_ok=True)
        script = folder / "script"
        script.write_text(request.script)
        script.chmod(0o750)
        pid = folder / "pid.json"
        pid.touch()
        pid.chmod(0o660)
        if self.wall:
            os.chown(run, owner, owner)
            os.chown(script, 0, owner)
            os.chown(pid, 0, owner)
        has_shebang = request.script.startswith("#!")
        spec = {
            "argv": [str(script)] if has_shebang else ["/bin/sh", str(script)],
            "folder": str(run / "work"),
            "environment": {
                "PATH": PATH,
                "HOME": str(run / "work"),
                "SLIPWAY_AGENT_FILE": str(self.folder / "agent.py"),
                "SLIPWAY_AGENT_DIR": str(run / "agent"),
                **request.environment,
            },
            "time_limit_seconds": request.time_limit_seconds,
            "cpus": request.resources.cpus_per_node,
            "gpus": request.resources.gpus_per_node,
            "owner": owner,
            "order": time.time_ns(),
        }
        self._write_spec(folder, spec)
        (self.folder / "live" / request.key).touch()

    def _write_spec(self, folder: Path, spec: dict[str, Any]) -> None:
        """Write what the runner needs; only the job's user may read it."""
        files.write(folder / "spec.json", spec, group=spec["owner"] if self.wall else None)

    def _start_waiting(self) -> None:
        """Give slots to waiting jobs, in order of submission, and start their runners."""
        with (self.folder / "live" / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting, taken = [], []
            for key, slots in self._live():
                folder = self.folder / key
                known = files.read(folder / "spec.json")
                if known is None:
                    continue
                if slots is not None:
                    taken.append(slots)
                    if reports.pid_of(folder) is None:
                        self._start(folder, known)  # it may have died; a second one leaves
                elif (folder / "cancel").exists():
                    self._give(folder, known, Slots(cpus=0))  # the runner finds the mark
                else:
                    waiting.append((known["order"], key, known))
            for _order, key, spec in sorted(waiting):
                wanted = Resources(cpus_per_node=spec["cpus"], gpus_per_node=spec["gpus"])
                free = machines.slots_for(wanted, self.machine, taken)
                if free is None:
                    return
                taken.append(free)
                self._give(self.folder / key, spec, free)

    def _give(self, folder: Path, spec: dict[str, Any], slots: Slots) -> None:
        devices = ",".join(map(str, slots.gpus))
        spec["environment"] |= {"CUDA_VISIBLE_DEVICES": devices}
        self._write_spec(folder, spec)
        files.write(folder / "slots.json", {"cpus": slots.cpus, "gpus": slots.gpus})
        self._start(folder, spec)

    def _start(self, folder: Path, spec: dict[str, Any]) -> None:
        """Start the runner."""
        self._detach(self._as_owner(spec, "run", str(folder)), {})

    def _send_courier(self, folder: Path) -> None:
        """Let what the job's agent could not deliver be delivered, as the job's user."""
        left = folder / "run" / "agent"
        spec = files.read(folder / "spec.json")
        if spec is None or not (left / "agent.json").exists() or (left / "delivered").exists():
            return
        named = ("SLIPWAY_AGENT_URL", "SLIPWAY_AGENT_TOKEN")
        given = {name: spec["environment"].get(name, "") for name in named}
        if self.portal_url:  # the portal may listen elsewhere than when the job began
            given["SLIPWAY_AGENT_URL"] = self.portal_url
        program = str(self.folder / "agent.py")
        self._detach(self._as_owner(spec, "deliver", str(left), program=program), given)

    def _detach(self, command: list[str], environment: Mapping[str, str]) -> None:
        """Start a program as a session of its own whose parent is init."""
        subprocess.run(  # noqa: S603 - our own runner or agent
            [*("/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh"), *command],
            env={"PATH": PATH, **environment},
            cwd="/",
            check=True,
            start_new_session=True,
        )

    def _as_owner(self, spec: dict[str, Any], *arguments: str, program: str = "") -> list[str]:
        """Return the command that runs the runner, or another program, as the job's user."""
        python = next((p for p in PYTHONS if Path(p).exists()), "python3")
        command = [python, "-I", program or str(self.folder / "runner.py"), *arguments]
        if not self.wall:
            return command
        ids = (f"--reuid={spec['owner']}", f"--regid={spec['owner']}")
        return ["setpriv", *ids, "--clear-groups", "--no-new-privs", "--", *command]

    def _live(self) -> Iterator[tuple[str, Slots | None]]:
        """Yield the jobs that have not ended, with their slots if they have some."""
        for mark in sorted((self.folder / "live").iterdir()):
            if mark.name == ".lock":
                continue
            folder = self.folder / mark.name
            pid = reports.pid_of(folder)
            ended = reports.end_of(folder) is not None
            if ended or (pid is not None and not self._is_alive(folder, pid)):
                continue
            slots = files.read(folder / "slots.json")
            given = Slots(cpus=slots["cpus"], gpus=tuple(slots["gpus"])) if slots else None
            yield mark.name, given

    def _look(self, key: str) -> Seen | None:
        folder = self._of(key)
        if not (folder / "spec.json").exists():
            return None
        end, pid = reports.end_of(folder), reports.pid_of(folder)
        if end is not None and end is not reports.RUBBISH and end["ending"] in set(Ending):
            return Seen(
                external_id=key,
                stage=Stage.ENDED,
                ending=Ending(end["ending"]),
                started_at=_instant(end["started_at"]),
                ended_at=_instant(end["ended_at"]),
                exit_code=end["code"],
                signal=end["signal"],
                nodes=(socket.gethostname(),),
            )
        if end is None and pid is None:
            return Seen(external_id=key, stage=Stage.PENDING)
        if end is None and pid is not None and self._is_alive(folder, pid):
            return Seen(
                external_id=key,
                stage=Stage.RUNNING,
                started_at=_instant(pid["started_at"]),
                nodes=(socket.gethostname(),),
            )
        if end is None and reports.end_of(folder) is not None:
            return self._look(key)  # it ended between the two looks
        return self._broken(key, pid or reports.RUBBISH)

    def _broken(self, key: str, pid: dict[str, Any]) -> Seen:
        """Describe a job whose runner is gone without a word, after ending what it left."""
        if pid.get("boot_id") not in (None, self.boot_id):
            message = "The machine was started anew while the job ran."
        else:
            with contextlib.suppress(Unavailable):  # others are still to be looked at
                self.cancel(key, Signal.KILL)
            message = "The process that looked after the job is gone."
        return Seen(
            external_id=key,
            stage=Stage.ENDED,
            ending=Ending.NODE_FAILURE,
            message=message,
            started_at=_instant(pid["started_at"]) if "started_at" in pid else None,
            nodes=(socket.gethostname(),),
        )

    def _is_alive(self, folder: Path, pid: dict[str, Any]) -> bool:
        """Tell whether the runner still lives: the same process, user and boot."""
        if pid is reports.RUBBISH or pid["boot_id"] != self.boot_id:
            return False
        try:
            is_own = Path(f"/proc/{pid['runner']}").stat().st_uid == (folder / "run").stat().st_uid
        except (OSError, ValueError):
            return False
        return is_own and runner.stat_of(pid["runner"], runner.TICKS) == pid["ticks"]


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@contextlib.contextmanager
def _as_unavailable() -> Iterator[None]:
    """Tell a folder that cannot be read or written from an absent job."""
    try:
        yield
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        raise Unavailable("local_unavailable", f"This machine's job folder: {error}") from error
