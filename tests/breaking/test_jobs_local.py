"""Local jobs that turn against the runner, the portal or their neighbours."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clusters.schedulers.contract import Ending, Stage
from clusters.schedulers.local import machine, runner
from clusters.schedulers.local.adapter import LocalScheduler
from tests.contracts.schedulers import Bench, of_local, way_for_all

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the wall needs root")
OWNER = "50001"
WRONG_FILES = {
    "a folder": "mkdir exit.json",
    "depths": "python3 -c 'print(\"[\" * 4000)' > exit.json",
    "infinity": """echo '{"ending": "completed", "code": 0, "signal": null, """
    """"started_at": 1e999, "ended_at": 1}' > exit.json""",
    "another age": """echo '{"ending": "completed", "code": 0, "signal": null, """
    """"started_at": 1, "ended_at": 1e300}' > exit.json""",
    "no such code": """echo '{"ending": "exit_code", "code": 12345678901, "signal": null, """
    """"started_at": 1, "ended_at": 1}' > exit.json""",
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return of_local(tmp_path)


@pytest.fixture
def walled(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return of_local(way_for_all(tmp_path_factory.mktemp("walled")), wall=True)


def folder_of(bench: Bench) -> Path:
    assert isinstance(bench.scheduler, LocalScheduler)
    return bench.scheduler.folder


def run_of(bench: Bench, key: str) -> Path:
    return folder_of(bench) / key / "run"


def wait_for(is_so: Callable[[], object], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        os.sched_yield()


def processes_with(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("script", WRONG_FILES.values(), ids=WRONG_FILES)
def test_what_one_job_writes_blinds_nobody(bench: Bench, script: str) -> None:
    good = bench.submit("sleep 300")
    bench.running(good)
    bad = bench.submit(f'cd "${{0%/*}}/run"; {script}; sleep 300')
    assert bench.ended(bad).ending is Ending.NODE_FAILURE
    assert bench.scheduler.observe([good, bad])[good].stage is Stage.RUNNING
    bench.scheduler.cancel(good)
    bench.ended(good)


def test_a_job_that_empties_its_folder_runs_once(bench: Bench) -> None:
    key = bench.submit('rm -rf ./* "$HOME"/*; echo once; exit 3')
    seen = bench.ended(key)
    assert (seen.ending, seen.exit_code) == (Ending.EXIT_CODE, 3)
    assert (run_of(bench, key) / "stdout").read_bytes() == b"once\n"


def test_a_job_that_forgets_that_it_began_does_not_begin_again(bench: Bench) -> None:
    proof = folder_of(bench).parent / "proof"
    key = bench.submit(f'echo x >> {proof}; cd "${{0%/*}}"; rm -rf run/*; sleep 300')
    wait_for(proof.exists)
    wait_for(lambda: not list(run_of(bench, key).iterdir()))
    bench.running(key)
    bench.scheduler.cancel(key)
    assert bench.ended(key).ending is Ending.CANCELLED
    assert proof.read_text() == "x\n"


@needs_root
def test_a_closed_folder_keeps_nobody_from_stopping_the_job(walled: Bench) -> None:
    key = walled.submit('chmod 000 "${0%/*}/run"; echo closed; sleep 300', owner=OWNER)
    walled.running(key)
    output = run_of(walled, key) / "stdout"
    wait_for(lambda: output.exists() and output.read_bytes() == b"closed\n")
    walled.scheduler.cancel(key)
    assert walled.ended(key).ending is Ending.CANCELLED


def test_a_runner_that_its_job_put_to_sleep_can_be_stopped(bench: Bench) -> None:
    key = bench.submit("kill -STOP $PPID; echo put; sleep 300")
    wait_for(lambda: (run_of(bench, key) / "stdout").exists())
    wait_for(lambda: (run_of(bench, key) / "stdout").read_bytes() == b"put\n")
    bench.scheduler.cancel(key)
    assert bench.ended(key).ending is Ending.CANCELLED


def test_what_left_the_session_ends_with_the_job(bench: Bench) -> None:
    word = f"71{time.monotonic_ns() % 10**9}"
    key = bench.submit(f"(setsid sleep {word} &)\nsetsid -f sleep {word}\nexit 4")
    assert bench.ended(key).exit_code == 4
    wait_for(lambda: processes_with(word) == [])


@pytest.mark.kills
def test_what_left_the_session_ends_when_the_runner_is_killed(bench: Bench) -> None:
    """Else a part of the job would run beside its next attempt."""
    word = f"72{time.monotonic_ns() % 10**9}"
    key = bench.submit(f"(setsid sleep {word} &)\nsetsid sh -c 'sleep {word}; exit'\nexit 4")
    wait_for(lambda: len(processes_with(word)) >= 3)
    os.kill(json.loads(runner.last_line(folder_of(bench) / key / "pid.json"))["runner"], 9)
    assert bench.ended(key).ending is Ending.NODE_FAILURE
    wait_for(lambda: processes_with(word) == [])


def test_a_name_that_is_no_text_hides_no_process() -> None:
    program = (
        "import ctypes, sys, time\n"
        "ctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)\n"
        "print(flush=True)\n"
        "time.sleep(300)\n"
    )
    child = subprocess.Popen(
        ["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    try:
        assert runner.stat_of(child.pid, 3) == child.pid
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@needs_root
def test_a_job_that_names_another_users_process_as_its_runner_is_gone(walled: Bench) -> None:
    victim = subprocess.Popen(["sleep", "300"], start_new_session=True)
    lie = (
        f'{{"runner": {victim.pid}, "ticks": {runner.stat_of(victim.pid, 19)}, "child": 1, '
        f'"boot_id": "{machine.boot_id()}", "started_at": 1}}'
    )
    key = walled.submit(f"sleep 1; echo '{lie}' > ../../pid.json; sleep 300", owner=OWNER)
    try:
        assert walled.ended(key).ending is Ending.NODE_FAILURE
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_an_end_that_the_job_writes_itself_is_none_while_it_runs(bench: Bench) -> None:
    forged = '{"ending": "completed", "code": 0, "signal": null, "started_at": 1, "ended_at": 2}'
    key = bench.submit(f"cd ..; echo '{forged}' > exit.json; echo up > told; exec sleep 60")
    wait_for((run_of(bench, key) / "told").exists)
    seen = bench.scheduler.observe([key])[key]
    assert (seen.stage, seen.ending) == (Stage.RUNNING, None)
    bench.scheduler.cancel(key)
    assert bench.until(key, lambda found: found.stage is Stage.ENDED).ending is Ending.CANCELLED
