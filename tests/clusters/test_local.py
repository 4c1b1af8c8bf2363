"""What only the local scheduler promises: the wall, slots, survival, and jobs that misbehave."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from clusters.schedulers.contract import Ending, Resources, Signal, Stage
from clusters.schedulers.local import adapter as local
from clusters.schedulers.local.adapter import LocalScheduler
from clusters.schedulers.local.checks import LocalChecks
from clusters.schedulers.local.machine import Machine, impossible, slots_for
from portal.core.errors import Rejected, Unavailable
from tests.contracts.schedulers import MACHINE, Bench, of_local, way_for_all

ROOT = Path(__file__).resolve().parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the wall needs root")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return of_local(tmp_path)


@pytest.fixture
def walled(tmp_path_factory) -> Bench:
    return of_local(way_for_all(tmp_path_factory.mktemp("walled")), wall=True)


def folder_of(bench: Bench, key: str) -> Path:
    return bench.scheduler.folder / key


def output(bench: Bench, key: str, name: str = "stdout") -> bytes:
    written = folder_of(bench, key) / "run" / name
    return written.read_bytes() if written.exists() else b""


def pid_of(bench: Bench, key: str) -> dict:
    return json.loads((folder_of(bench, key) / "pid.json").read_text().splitlines()[-1])


def alive(session: int) -> list[int]:
    found = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    return [pid for pid in found if local.runner.stat_of(pid, 3) == session]


def wait_for(is_so, *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        os.sched_yield()


def test_the_environment_is_what_was_given_and_no_more(bench, monkeypatch) -> None:
    monkeypatch.setenv("SLIPWAY_SECRET_KEY", "of the portal")
    key = bench.submit("env", environment={"A": "x\ny", "SLIPWAY_PARAM_P": "'\"$`"})
    bench.ended(key)
    names = {line.split("=")[0] for line in output(bench, key).decode().splitlines() if "=" in line}
    assert names - {"PWD", "_", "OLDPWD", "SHLVL"} == {
        "A",
        "SLIPWAY_PARAM_P",
        "PATH",
        "HOME",
        "CUDA_VISIBLE_DEVICES",
        "SLIPWAY_AGENT_DIR",
        "SLIPWAY_AGENT_FILE",
    }
    assert b"'\"$`" in output(bench, key)


def test_bytes_and_streams_stay_as_they_are(bench) -> None:
    key = bench.submit("printf '\\000\\377\\r'; printf err >&2; cat")
    bench.ended(key)
    assert output(bench, key) == b"\0\xff\r"
    assert output(bench, key, "stderr") == b"err"


@pytest.mark.parametrize(
    ("script", "code"),
    [("#!/no/such/interpreter\n", 127), ("no-such-command", 127), ("exec /etc/passwd", 126)],
)
def test_a_command_that_cannot_run_says_why(bench, script, code) -> None:
    key = bench.submit(script)
    seen = bench.ended(key)
    assert (seen.ending, seen.exit_code) == (Ending.EXIT_CODE, code)
    assert output(bench, key, "stderr")


def test_what_a_job_leaves_behind_ends_with_it(bench) -> None:
    key = bench.submit("sleep 300 &\n(sleep 300 &) \ntrue")
    bench.ended(key)
    session = pid_of(bench, key)["child"]
    wait_for(lambda: alive(session) == [])


@pytest.mark.slow
def test_a_job_that_ignores_term_is_killed(bench) -> None:
    """Buys 10 s: the grace before KILL is real."""
    key = bench.submit("trap '' TERM\nwhile :; do sleep 1; done", time_limit_seconds=1)
    seen = bench.ended(key)
    assert (seen.ending, seen.signal) == (Ending.TIME_LIMIT, 9)


@pytest.mark.kills
def test_a_killed_runner_is_a_node_failure_and_leaves_nothing(bench) -> None:
    key = bench.submit("sleep 300")
    bench.running(key)
    wait_for(lambda: pid_of(bench, key)["child"])
    mark = pid_of(bench, key)
    os.kill(mark["runner"], signal.SIGKILL)
    seen = bench.ended(key)
    assert seen.ending is Ending.NODE_FAILURE
    wait_for(lambda: alive(mark["child"]) == [])
    assert bench.scheduler.nodes()[0].cpus_allocated == 0


def test_another_boot_is_a_node_failure(bench) -> None:
    key = bench.submit("sleep 300")
    bench.running(key)
    after = LocalScheduler(
        folder=bench.scheduler.folder, wall=False, machine=MACHINE, boot_id="another"
    )
    seen = after.observe([key])[key]
    assert (seen.ending, "started anew" in seen.message) == (Ending.NODE_FAILURE, True)
    bench.scheduler.cancel(key)
    bench.ended(key)


def test_jobs_start_in_the_order_of_submission_as_slots_become_free(bench) -> None:
    large = Resources(cpus_per_node=3)
    first = bench.submit("sleep 300", resources=large)
    second = bench.submit("sleep 300", resources=large)
    third = bench.submit("sleep 300", resources=Resources(cpus_per_node=1))
    bench.running(first)
    looks = bench.scheduler.observe([second, third])
    assert {seen.stage for seen in looks.values()} == {Stage.PENDING}
    assert bench.scheduler.nodes()[0].cpus_allocated == 3
    bench.scheduler.cancel(first)
    bench.ended(first)
    bench.running(second)
    bench.running(third)
    for key in (second, third):
        bench.scheduler.cancel(key)
        bench.ended(key)
    assert bench.scheduler.nodes()[0].cpus_allocated == 0


def test_a_waiting_job_is_cancelled_whoever_waits_before_it(bench) -> None:
    whole = Resources(cpus_per_node=bench.scheduler.machine.cpus)
    first, second, third = (bench.submit("sleep 300", resources=whole) for _ in range(3))
    bench.running(first)
    bench.scheduler.cancel(third)
    assert bench.ended(third).ending is Ending.CANCELLED
    assert bench.scheduler.observe([second])[second].stage is Stage.PENDING
    for key in (second, first):
        bench.scheduler.cancel(key)
        bench.ended(key)


def test_gpus_are_given_by_index_and_to_one_job_only(tmp_path) -> None:
    machine = Machine(cpus=4, memory_bytes=1 << 34, gpus=2, gpu_type="h200")
    bench = of_local(tmp_path, machine=machine)
    one = Resources(gpus_per_node=1)
    keys = [bench.submit("echo $CUDA_VISIBLE_DEVICES; sleep 300", resources=one) for _ in range(2)]
    for key in keys:
        bench.running(key)
        wait_for(lambda key=key: output(bench, key) != b"")
    assert sorted(output(bench, key) for key in keys) == [b"0\n", b"1\n"]
    for key in keys:
        bench.scheduler.cancel(key)
        bench.ended(key)


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        (Resources(nodes=2), "1 node fits"),
        (Resources(cpus_per_node=5), "has 4"),
        (Resources(gpus_per_node=1), "has 0"),
        (Resources(memory_bytes_per_node=1 << 40), "memory"),
    ],
)
def test_what_can_never_fit_says_what_there_is(wanted, word) -> None:
    assert word in impossible(wanted, MACHINE)
    assert impossible(Resources(), MACHINE) == ""
    assert slots_for(Resources(cpus_per_node=4), MACHINE, []) is not None


def test_a_key_never_leaves_the_folder(bench) -> None:
    for key in ("../x-1", "a/b", "", ".live", "x" * 200):
        with pytest.raises(Rejected):
            bench.submit("true", key=key)


@pytest.mark.kills
def test_ten_submits_at_once_start_one_process(bench) -> None:
    request = bench.request("echo once; sleep 300")
    ids: list[str] = []

    def submit() -> None:
        folder = bench.scheduler.folder
        ids.append(LocalScheduler(folder=folder, wall=False, machine=MACHINE).submit(request))

    threads = [Thread(target=submit) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids == [request.key] * 10
    bench.running(request.key)
    wait_for(lambda: output(bench, request.key) != b"")
    bench.scheduler.cancel(request.key)
    bench.ended(request.key)
    assert output(bench, request.key) == b"once\n"


@pytest.mark.kills
@pytest.mark.parametrize("step", ["_write_spec", "_give", "_start", "_as_owner"])
def test_a_submit_killed_at_any_step_is_finished_by_the_next(bench, step) -> None:
    """Buys that a crash between two statements neither loses a job nor runs it twice."""
    request = bench.request("echo once")
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from clusters.schedulers.contract import SubmitRequest\n"
        "from clusters.schedulers.local.adapter import LocalScheduler\n"
        "from clusters.schedulers.local.machine import Machine\n"
        "class Dies(LocalScheduler):\n"
        f"    def {step}(self, *a, **k):\n"
        "        os.kill(os.getpid(), 9)\n"
        "machine = Machine(cpus=4, memory_bytes=1 << 34)\n"
        "dies = Dies(folder=Path(sys.argv[1]), wall=False, machine=machine)\n"
        "dies.submit(SubmitRequest(key=sys.argv[2], name='t', owner='', script=sys.argv[3]))\n"
    )
    command = [sys.executable, "-c", program, str(bench.scheduler.folder), request.key]
    done = subprocess.run([*command, request.script], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    bench.scheduler.submit(request)
    assert bench.ended(request.key).ending is Ending.COMPLETED
    assert output(bench, request.key) == b"once\n"


@needs_root
def test_behind_the_wall_a_job_is_another_user_and_sees_nobody_elses(walled) -> None:
    secret = walled.submit("id -u; echo mine > note", owner="50001", environment={"S": "hidden"})
    walled.ended(secret)
    assert output(walled, secret).split() == [b"50001"]
    other = folder_of(walled, secret)
    spy = walled.submit(
        f"id -u; id -G; cat {other}/run/work/note; ls {other}/run; cat {other}/spec.json; "
        f"ls {other.parent}; touch {other}/cancel; grep NoNewPrivs /proc/self/status",
        owner="50002",
    )
    walled.ended(spy)
    seen = output(walled, spy)
    assert seen.split()[:2] == [b"50002", b"50002"]
    assert b"mine" not in seen
    assert b"hidden" not in seen
    assert seen.split()[-2:] == [b"NoNewPrivs:", b"1"]
    assert not (other / "cancel").exists()


@needs_root
def test_what_a_job_writes_about_itself_harms_nobody(walled) -> None:
    victim = subprocess.Popen(["sleep", "300"], start_new_session=True)
    lies = {"runner": victim.pid, "ticks": local.runner.stat_of(victim.pid, 19)}
    lies |= {"child": victim.pid, "boot_id": walled.scheduler.boot_id, "started_at": 1}
    liar = walled.submit(
        f"sleep 1; echo '{json.dumps(lies)}' > ../../pid.json; sleep 300", owner="50001"
    )
    links = walled.submit("ln -sf /etc/shadow ../exit.json; sleep 300", owner="50001")
    noise = walled.submit("head -c 100000 /dev/urandom > ../exit.json; sleep 300", owner="50001")
    good = walled.submit("sleep 300", owner="50002")
    walled.running(good)
    written = folder_of(walled, liar) / "pid.json"
    wait_for(lambda: f'"runner": {victim.pid}' in written.read_text())
    for key in (links, noise):
        assert walled.ended(key).ending is Ending.NODE_FAILURE
    for signal_ in (None, Signal.TERM, Signal.KILL):
        walled.scheduler.cancel(liar, signal_)
    assert victim.poll() is None
    assert walled.scheduler.observe([good])[good].stage is Stage.RUNNING
    walled.scheduler.cancel(good)
    walled.ended(good)
    victim.kill()
    victim.wait()
    subprocess.run(["pkill", "-KILL", "-U", "50001"], check=False)


@needs_root
def test_a_closed_way_to_the_folders_is_said_and_not_waited_for(tmp_path) -> None:
    tmp_path.chmod(0o700)
    bench = of_local(tmp_path, wall=True)
    with pytest.raises(Unavailable, match="chmod a\\+x"):
        bench.submit("true", owner="50001")


def test_a_check_knows_a_user_without_a_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    checks = LocalChecks(folder=tmp_path, wall=False, portal_url="http://127.0.0.1:1", uid=50_000)
    assert "user 4000000000" in checks.check()[1].message
