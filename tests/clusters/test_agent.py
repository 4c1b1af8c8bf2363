"""The node agent end to end: every byte once, in order, whatever the portal does."""

import itertools
import json
import random
import time

import pytest

from tests.clusters.agents import deliver, run_python, run_shell, spool_of, wait_for
from tests.doubles.agent_portal import CUT, LOSE, STALL, AgentPortal, agent_portal


@pytest.fixture
def portal():
    with agent_portal() as double:
        yield double


OUTAGE_SECONDS = 600


def lines(number: int) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(number))


PRINT = "for n in range({}): print('line', n)"
SLOWLY = "import time\nfor n in range({}):\n  print('line', n, flush=True)\n  time.sleep({})"


def test_output_and_end_arrive_once_and_in_order(portal: AgentPortal, tmp_path) -> None:
    script = "for n in 1 2 3; do echo out $n; sleep 0.02; echo err $n >&2; sleep 0.02; done; exit 3"
    agent = run_shell(portal, tmp_path / "job", script)
    assert agent.ended() == 3
    assert portal.stdout == b"out 1\nout 2\nout 3\n"
    assert portal.stderr == b"err 1\nerr 2\nerr 3\n"
    assert [stream for stream, _data in portal.taken] == ["stdout", "stderr"] * 3
    assert (portal.exit["code"], portal.exit["signal"], portal.exit["error"]) == (3, None, "")
    assert portal.exit["ended_at"] - portal.exit["started_at"] == pytest.approx(0.15, abs=0.5)
    assert (tmp_path / "job" / "exit.json").exists()
    assert spool_of(tmp_path / "job") == b""
    assert [post["seq"] for post in portal.posts] == list(range(len(portal.posts)))


def test_a_line_of_a_quiet_job_is_sent_at_once(portal, tmp_path) -> None:
    portal.flush_after_ms = 300
    source = "import time\nfor _ in range(3): time.sleep(0.5); print(time.time(), flush=True)"
    agent = run_python(portal, tmp_path / "job", source)
    arrived: list[float] = []

    def note(post):
        arrived.extend([time.time()] * len(post["chunks"]))

    portal.behave = note
    assert agent.ended() == 0
    late = [at - float(line) for at, line in zip(arrived, portal.stdout.split(), strict=True)]
    assert min(late) < 0.05


def test_posts_keep_the_pace_that_the_portal_asks_for(portal, tmp_path) -> None:
    portal.flush_after_ms = 400
    began: list[float] = []
    portal.behave = lambda _post: began.append(time.monotonic())
    agent = run_shell(portal, tmp_path / "job", "for n in $(seq 100); do echo $n; sleep 0.01; done")
    assert agent.ended() == 0
    pauses = [late - early for early, late in itertools.pairwise(began)][1:-1]
    assert pauses
    assert min(pauses) > 0.35


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"no end",
        b"\0\xff\xfe\x80\xc3" * 30_000,
        "é€😀".encode() * 50_000,
        b"0123456789" * 1_000_000,
        b"".join(b"\r%d %%" % n for n in range(50_000)),
        b"a\r\n" * 10_000,
        b"\n" * 100_000,
    ],
    ids=["nothing", "no-end", "binary", "utf-8", "10-MB-line", "carriage-returns", "crlf", "empty"],
)
def test_any_bytes_stay_as_they_are(portal, tmp_path, output) -> None:
    (tmp_path / "output").write_bytes(output)
    assert run_shell(portal, tmp_path / "job", f"cat {tmp_path}/output").ended() == 0
    assert portal.stdout == output


def test_characters_are_never_cut_and_partial_lines_come_soon(portal, tmp_path) -> None:
    source = """
import os, time
for byte in "é€😀".encode() * 3:
    os.write(1, bytes([byte]))
    time.sleep(0.03)
os.write(1, b"prompt> ")
time.sleep(0.5)
"""
    run_python(portal, tmp_path / "job", source).ended()
    assert portal.stdout == "é€😀".encode() * 3 + b"prompt> "
    for _stream, data in portal.taken:
        data.decode()
    assert len(portal.taken) >= 2


def test_many_lines_at_full_speed(portal, tmp_path) -> None:
    """Buys the figure that the agent is made for; a second or two."""
    agent = run_python(portal, tmp_path / "job", PRINT.format(200_000))
    assert agent.ended() == 0
    assert time.time() - portal.exit["ended_at"] < 2.5
    assert portal.stdout == lines(200_000)
    assert max(portal.sizes) <= 1024 * 1024


@pytest.mark.parametrize("fault", [500, 502, 429, 503, 400, 413, CUT, LOSE])
def test_faults_lose_nothing_and_double_nothing(portal, tmp_path, fault) -> None:
    """Buys a second or two of real back-off."""
    draw = random.Random(7)
    portal.behave = lambda _post: fault if draw.random() < 0.3 else None
    agent = run_python(portal, tmp_path / "job", SLOWLY.format(300, 0.003))
    agent.ended()
    portal.behave = lambda _post: None
    assert deliver(portal, tmp_path / "job").ended() == 0
    assert portal.stdout == lines(300)
    assert portal.exit["code"] == 0


def test_a_stalled_portal_does_not_hold_the_command_up(portal, tmp_path) -> None:
    portal.behave = lambda _post: STALL
    begun = time.monotonic()
    agent = run_python(portal, tmp_path / "job", PRINT.format(100_000))
    wait_for(lambda: (tmp_path / "job" / "exit.json").exists())
    assert time.monotonic() - begun < 5
    portal.behave = lambda _post: None
    portal.released.set()
    assert agent.ended() == 0
    assert portal.stdout == lines(100_000)


def test_an_outage_and_a_courier(portal, tmp_path) -> None:
    """Buys the 5 s that an agent tries for, and the courier after it; twice is once."""
    portal.behave = lambda _post: 500
    agent = run_python(portal, tmp_path / "job", PRINT.format(20_000))
    assert agent.ended() == 0
    assert (portal.stdout, portal.exit) == (b"", None)
    portal.behave = lambda _post: None
    couriers = [deliver(portal, tmp_path / "job") for _ in range(2)]
    assert [courier.ended() for courier in couriers] == [0, 0]
    assert portal.stdout == lines(20_000)
    assert portal.exit["code"] == 0
    number = len(portal.posts)
    assert deliver(portal, tmp_path / "job").ended() == 0
    assert len(portal.posts) == number


@pytest.mark.slow
def test_an_outage_that_ends_while_the_command_runs(portal, tmp_path) -> None:
    """Buys several back-offs, of which none is hurried by the command's end."""
    until = time.monotonic() + 4
    portal.behave = lambda _post: CUT if time.monotonic() < until else None
    agent = run_python(portal, tmp_path / "job", SLOWLY.format(5000, 0.001) + "\ntime.sleep(9)")
    wait_for(lambda: portal.stdout == lines(5000))
    assert portal.exit is None
    agent.process.terminate()
    assert agent.ended() == -15


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_outage_longer_than_every_pause(portal, tmp_path) -> None:
    """Buys the real thing: ten minutes without a portal, and the longest pause after it."""
    until = time.monotonic() + OUTAGE_SECONDS
    portal.behave = lambda _post: CUT if time.monotonic() < until else None
    number = (OUTAGE_SECONDS + 70) * 10
    agent = run_python(portal, tmp_path / "job", SLOWLY.format(number, 0.1))
    assert agent.ended(seconds=OUTAGE_SECONDS + 200) == 0
    assert portal.stdout == lines(number)
    assert portal.posts[0]["exit"] is None  # it was back before the command's end
    assert portal.exit["code"] == 0


def test_retry_after_is_kept(portal, tmp_path) -> None:
    times: list[float] = []

    def refuse(_post):
        times.append(time.monotonic())
        portal.retry_after = "1" if len(times) == 1 else ""
        return 503 if len(times) == 1 else None

    portal.behave = refuse
    run_shell(portal, tmp_path / "job", "echo x; sleep 1.5").ended()
    assert 0.95 < times[1] - times[0] < 1.4
    assert portal.stdout == b"x\n"


@pytest.mark.parametrize("status", [401, 403, 410])
def test_an_ended_token_lets_the_command_run_on(portal, tmp_path, status) -> None:
    portal.behave = lambda _post: status
    agent = run_shell(portal, tmp_path / "job", f"echo x; sleep 0.5; touch {tmp_path}/done; exit 4")
    assert agent.ended() == 4
    assert (tmp_path / "done").exists()
    assert b"x\n" in spool_of(tmp_path / "job")


def test_a_portal_that_went_back_gets_it_again(portal, tmp_path) -> None:
    def forget(post):
        if post["seq"] == 6:
            portal.acked["stdout"] = len(b"line 0\n")
            portal.taken[:] = [("stdout", b"line 0\n")]

    portal.behave = forget
    assert run_python(portal, tmp_path / "job", SLOWLY.format(20, 0.06)).ended() == 0
    assert portal.stdout == lines(20)


def test_a_full_spool_lets_the_middle_go_and_says_so(portal, tmp_path) -> None:
    portal.behave = lambda _post: 500
    limit = 256 * 1024
    source = "for n in range(100_000): print('%019d' % n)"
    agent = run_python(portal, tmp_path / "job", source, SLIPWAY_AGENT_SPOOL_BYTES=str(limit))
    wait_for(lambda: (tmp_path / "job" / "exit.json").exists())
    assert len(spool_of(tmp_path / "job")) <= limit * 1.2
    portal.behave = lambda _post: None
    agent.ended()
    deliver(portal, tmp_path / "job").ended()
    first, gap, rest = portal.stdout.partition(b"<gap ")
    gap, newest = rest.split(b">", 1)
    assert len(first) + int(gap) + len(newest) == 2_000_000
    assert len(first) > limit // 4
    assert len(newest) > limit // 4
    assert first.startswith(b"%019d\n" % 0)
    assert newest.endswith(b"%019d\n" % 99_999)


def test_a_full_spool_that_blocks_loses_nothing(portal, tmp_path) -> None:
    portal.behave = lambda _post: 500
    source = f"""
import os
for n in range(20_000): print('%099d' % n)
open('{tmp_path}/done', 'w')
"""
    knobs = {"SLIPWAY_AGENT_SPOOL_BYTES": "262144", "SLIPWAY_AGENT_SPOOL_FULL": "block"}
    agent = run_python(portal, tmp_path / "job", source, **knobs)
    wait_for(lambda: len(spool_of(tmp_path / "job")) > 262144)
    assert not (tmp_path / "done").exists()
    portal.behave = lambda _post: None
    assert agent.ended() == 0
    assert portal.stdout == b"".join(b"%099d\n" % n for n in range(20_000))


def test_a_folder_is_used_once(portal, tmp_path) -> None:
    run_shell(portal, tmp_path / "job", "echo first").ended()
    again = run_shell(portal, tmp_path / "job", f"touch {tmp_path}/again")
    assert again.ended() == 125
    assert "used before" in again.said
    assert not (tmp_path / "again").exists()


def test_rank_and_restart_name_the_post(portal, tmp_path) -> None:
    knobs = {"SLIPWAY_NODE_RANK": "3", "SLIPWAY_AGENT_RESTART": "2"}
    run_shell(portal, tmp_path / "job", "env", **knobs).ended()
    assert {(post["rank"], post["restart"]) for post in portal.posts} == {(3, 2)}
    assert b"SLIPWAY_NODE_RANK=3" in portal.stdout
    assert b"SLIPWAY_AGENT" not in portal.stdout
    agent = portal.posts[0]["agent"]
    assert set(agent) == {"version", "boot", "host", "python"}


def test_samples_and_checkpoints_ride_along(portal, tmp_path) -> None:
    """Buys two seconds of real samples."""
    script = """
cd "$SLIPWAY_CHECKPOINT_DIR"
mkdir step-1.tmp; sleep 1.3; echo 12345 > step-1.tmp/model; mv step-1.tmp step-1
echo 123 > step-2; ln -s step-2 latest; touch .hidden; touch unfinished.partial
sleep 1.2
"""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "of-the-attempt-before").touch()
    run_shell(portal, tmp_path / "job", script, SLIPWAY_CHECKPOINT_DIR=str(folder)).ended()
    assert set(portal.checkpoints) == {"step-1", "step-2"}
    assert portal.checkpoints["step-1"]["bytes"] == 6
    assert portal.checkpoints["step-1"]["seconds"] == pytest.approx(1.3, abs=0.3)
    assert portal.checkpoints["step-2"]["seconds"] is None
    assert portal.checkpoints["step-2"]["bytes"] == 4
    series = list(portal.samples.values())[-1]
    assert 0 <= series["cpu_utilization_ratio"] <= 1
    assert 0 < series["memory_used_bytes"] < series["memory_total_bytes"]
    assert series["nic_receive_bytes_per_second"] >= 0
    assert series["agent_memory_bytes"] < 30 * 1024**2
    assert not any(name.startswith("gpu_") for name in series)


def test_the_report_is_on_disk_when_nobody_listens(tmp_path) -> None:
    """Buys the 5 s that the agent tries for."""
    with agent_portal() as portal:
        pass
    agent = run_shell(portal, tmp_path / "job", "echo x; exit 7")
    assert agent.ended() == 7
    report = json.loads((tmp_path / "job" / "exit.json").read_text())
    assert (report["code"], report["signal"]) == (7, None)
    assert (tmp_path / "job").stat().st_mode & 0o777 == 0o700
