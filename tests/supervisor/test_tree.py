"""The tree of processes, with small shell scripts as children."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervisor.processes import SUPERVISOR, alive, clean_environ, supervisor, until

# Standard error is closed, since a shell that writes to a broken pipe dies before its trap.
LIVES = """
exec 2> /dev/null
trap 'echo stop {name} >> "{log}"; exit 0' TERM
echo start {name} >> "{log}"; touch "{log}.{name}"
while :; do sleep 0.05; done
"""
# Like a pool of workers: children in the same group that do not heed TERM.
POOL = """
trap '' TERM
: {mark}; sleep 300 & sh -c 'trap "" TERM; : {mark}; while :; do sleep 0.2; done' &
touch "{log}.pool"; while :; do sleep 0.2; done
"""


def lives(name: str, log: Path) -> dict:
    script = LIVES.format(name=name, log=log)
    return {"name": name, "script": script, "ready": f"{log}.{name}"}


def test_starts_in_order_and_stops_in_reverse(tmp_path):
    """Buys: a database outlives what writes to it (two processes start and stop)."""
    log = tmp_path / "log"
    with supervisor(tmp_path, lives("a", log), lives("b", log)) as started:
        started.says("ready")
        started.process.send_signal(signal.SIGINT)
        started.says("stopped")
        assert started.process.wait(10) == 0
    lines = log.read_text().split("\n")
    assert sorted(lines[:2]) == ["start a", "start b"]
    assert lines[2:4] == ["stop b", "stop a"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_it_as_well(tmp_path, number):
    """Buys: systemd and a closed terminal end it cleanly."""
    log = tmp_path / "log"
    with supervisor(tmp_path, lives("a", log)) as started:
        started.says("ready")
        started.process.send_signal(number)
        assert started.process.wait(10) == 0
    assert "stop a" in log.read_text()


def test_prefixes_lines_and_keeps_a_last_half_line(tmp_path):
    script = "printf 'one\\ntwo'; exec sleep 300"
    with supervisor(tmp_path, {"name": "talker", "script": script}) as started:
        started.says("talker   | one\n")
        pid = int(alive_child(started.process.pid))
        os.kill(pid, signal.SIGKILL)
        started.says("talker   | two\n")


def test_restarts_what_ends_with_a_growing_pause(tmp_path):
    """Buys: a crash heals itself and a crash loop does not burn the machine (about 4 s)."""
    script = f'echo start >> "{tmp_path}/log"; exit 3'
    with supervisor(tmp_path, {"name": "loop", "script": script}) as started:
        started.says("loop ended (exit status 3); starting it again in 1 s")
        started.says("loop ended (exit status 3); starting it again in 2 s")
        until(lambda: (tmp_path / "log").read_text().count("start") == 3, 10, "a third start")


def test_a_killed_child_is_named_by_its_signal(tmp_path):
    log = tmp_path / "log"
    with supervisor(tmp_path, lives("a", log)) as started:
        started.says("ready")
        os.kill(int(alive_child(started.process.pid)), signal.SIGKILL)
        started.says("a ended (by SIGKILL)")
        until(lambda: log.read_text().count("start a") == 2, 10, "a second start")


def test_ending_before_being_ready_is_one_sentence_and_stops_the_rest(tmp_path):
    log = tmp_path / "log"
    broken = {"name": "web", "script": "echo no such table >&2; exit 7", "ready": "/nowhere"}
    with supervisor(tmp_path, lives("a", log), broken) as started:
        assert started.process.wait(10) == 1
        assert "web      | no such table" in started.text
        assert "web ended (exit status 7) before it was ready" in started.text
        assert "Traceback" not in started.text
    assert "stop a" in log.read_text()


def test_children_have_groups_of_their_own(tmp_path):
    """Buys: Ctrl-C in the terminal reaches the supervisor alone, so the order holds."""
    with supervisor(tmp_path, lives("a", tmp_path / "log")) as started:
        started.says("ready")
        child = int(alive_child(started.process.pid))
        assert os.getpgid(child) == child


def test_a_second_ctrl_c_kills_at_once(tmp_path):
    """Buys: an operator is never stuck with a process that does not heed TERM."""
    script = f"trap 'echo heard' TERM; touch '{tmp_path}/up'; while :; do sleep 0.1; done"
    stubborn = {
        "name": "stubborn",
        "script": f": {tmp_path}; {script}",
        "ready": f"{tmp_path}/up",
        "stop_seconds": 60,
    }
    with supervisor(tmp_path, stubborn) as started:
        started.says("ready")
        started.process.send_signal(signal.SIGINT)
        started.says("stubborn | heard")
        started.process.send_signal(signal.SIGINT)
        assert started.process.wait(5) != 0
        assert "Killing everything at once." in started.text
    until(lambda: not alive(str(tmp_path)), 5, lambda: str(alive(str(tmp_path))))


def test_a_program_that_does_not_stop_is_killed_with_its_children(tmp_path):
    """Buys: no pool child is left after a stop (waits the program's stop time, 1 s)."""
    log = tmp_path / "log"
    pool = {
        "name": "pool",
        "script": POOL.format(mark=tmp_path, log=log),
        "ready": f"{log}.pool",
        "stop_seconds": 1,
    }
    with supervisor(tmp_path, pool) as started:
        started.says("ready")
        started.process.send_signal(signal.SIGINT)
        assert started.process.wait(10) == 0
        assert "pool did not stop in 1 s: killed" in started.text
    until(lambda: not alive(str(tmp_path)), 5, lambda: str(alive(str(tmp_path))))


@pytest.mark.kills
@pytest.mark.parametrize("first_the_watcher", [False, True])
def test_nothing_is_left_after_kill_9_of_the_supervisor(tmp_path, first_the_watcher):
    """Buys: an out-of-memory kill leaves no orphan that holds the port or the data (5 s)."""
    log = tmp_path / "log"
    pool = {
        "name": "pool",
        "script": POOL.format(mark=tmp_path, log=log),
        "ready": f"{log}.pool",
    }
    lock = tmp_path / "lock"
    with supervisor(tmp_path, pool, lives("a", log), lock=lock) as started:
        started.says("ready")
        if first_the_watcher:
            before = watcher_of(started.process.pid)
            os.kill(int(before), signal.SIGKILL)
            until(lambda: watcher_of(started.process.pid) not in (None, before), 5, "a new watcher")
        watcher = watcher_of(started.process.pid)
        started.process.kill()
        until(lambda: not alive(str(tmp_path)), 12, lambda: str(alive(str(tmp_path))))
        until(lambda: not Path(f"/proc/{watcher}").exists() or is_zombie(watcher), 5, "its end")
    assert "stop a" in log.read_text()


def test_a_reader_that_goes_away_stops_nothing(tmp_path):
    """Buys: `./slipway up | head -1` and a closed terminal leave no half-stopped portal."""
    log = tmp_path / "log"
    talker = {"name": "talker", "script": f"while :; do echo {tmp_path}; sleep 0.02; done"}
    given = json.dumps({"programs": [lives("a", log), talker], "lock": None})
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, given], stdout=subprocess.PIPE, env=clean_environ()
    )
    with process, process.stdout as pipe:
        pipe.readline()
        pipe.close()
        until(lambda: len(Path(f"/proc/{process.pid}/fd/1").readlink().parts) == 3, 10, "/dev/null")
        assert process.poll() is None
        until(log.exists, 10, "a did not start")
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
    assert "stop a" in log.read_text()
    until(lambda: not alive(str(tmp_path)), 5, lambda: str(alive(str(tmp_path))))


def alive_child(parent: int) -> str:
    """The pid of the supervisor's one program."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return next(pid for pid in children if pid != watcher_of(parent))


def watcher_of(parent: int) -> str | None:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for pid in children:
        if b"slipway-watcher" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


def is_zombie(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
