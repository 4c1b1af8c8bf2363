"""Every part of a live portal is killed at every step of a job's life."""

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from tests.kills.portal import FINAL, Live, clean, live
from tests.supervisor.processes import until

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]
LINES = 60
COUNTER = (
    "echo $$ >> runs; i=0; "
    f"while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep 0.05; done; exit 7"
)
WANTED = "".join(f"line {number}\n" for number in range(LINES))
STEPS = ("submitted", "printing", "ending")
PAIRS = [
    ("web", "printing"),
    ("worker", "submitted"),
    ("valkey", "ending"),
    ("postgres", "printing"),
]
ALL = [(part, step) for part in ("web", "worker", "beat", "valkey", "postgres") for step in STEPS]


@pytest.fixture(scope="module")
def portal(tmp_path_factory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("kills")) as found:
        yield found
    clean(found)


def runs(portal: Live, job: str) -> int:
    """How many processes ever ran the job's command."""
    return sum(
        len(path.read_text().splitlines()) for path in portal.folder.glob(f"{job}-*/run/work/runs")
    )


def come_to(portal: Live, job: str, step: str) -> None:
    """Wait for the moment of the kill."""
    if step == "submitted":
        return
    work = f"{job}-1/run/work/runs"
    until(lambda: (portal.folder / work).exists(), 60, "the job did not start")
    if step == "ending":
        path = f"/jobs/{job}/logs?offset=-400"
        last = f"line {LINES - 4}"
        until(lambda: last in portal.ask("GET", path).json()["text"], 60, "the job did not print")


def check(portal: Live, job: str) -> None:
    """One process ever, each line once, the right end."""
    found = portal.wait(job, *FINAL)
    assert (found["phase"], found["exit_code"]) == ("FAILED", 7), found
    assert (found["reason"]["code"], found["attempt"]) == ("exit_code", 1)
    assert portal.log(job) == WANTED
    assert runs(portal, job) == 1


@pytest.mark.parametrize(
    ("part", "step"),
    [
        pytest.param(*pair, marks=() if pair in PAIRS else pytest.mark.slow, id="-".join(pair))
        for pair in ALL
    ],
)
def test_a_part_is_killed_and_nothing_is_lost_or_doubled(portal, part, step) -> None:
    job = portal.submit(COUNTER)
    come_to(portal, job, step)
    portal.kill(part)
    check(portal, job)


def test_two_tabs_press_launch_at_once_with_one_key_and_one_job_is_made(portal) -> None:
    body = {"definition": "shell-script", "team": "kills", "cluster": "local"}
    headers = {"Idempotency-Key": "two-tabs"}
    made = {portal.ask("POST", "/jobs", json=body, headers=headers).json()["id"] for _tab in "ab"}
    assert len(made) == 1
    portal.wait(made.pop(), "SUCCEEDED")


def test_a_killed_agent_ends_its_job_and_what_was_printed_is_there_once(portal) -> None:
    job = portal.submit("i=0; while :; do echo line $i; i=$((i+1)); sleep 0.02; done")
    path = f"/jobs/{job}/logs?limit=300"
    until(lambda: "line 20" in portal.ask("GET", path).json()["text"], 60, "it did not print")
    agent = next(
        p
        for p in psutil.process_iter(["cmdline"])
        if f"{job}-1/run/agent/command" in " ".join(p.info["cmdline"] or ())
        and "agent.py" in " ".join(p.info["cmdline"] or ())
    )
    os.kill(agent.pid, signal.SIGKILL)
    found = portal.wait(job, *FINAL)
    assert (found["phase"], found["signal"]) == ("FAILED", 9)
    lines = portal.log(job).splitlines()
    assert lines == [f"line {number}" for number in range(len(lines))]
    assert len(lines) > 20


def test_a_stop_reaches_the_job_though_the_worker_dies(portal) -> None:
    job = portal.submit("trap 'echo saved; exit 3' TERM; echo up; while :; do sleep 0.1; done")
    until(lambda: portal.ask("GET", f"/jobs/{job}/logs").json()["text"], 60, "it did not start")
    portal.ask("POST", f"/jobs/{job}/stop")
    portal.kill("worker")
    found = portal.wait(job, *FINAL)
    assert (found["phase"], found["reason"]["code"]) == ("CANCELLED", "user")
    assert portal.log(job).splitlines()[-1] == "saved"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "moves"), [(signal.SIGINT, False), (signal.SIGKILL, False), (signal.SIGKILL, True)]
)
def test_jobs_outlive_the_supervisor_and_are_found_again(tmp_path, how, moves) -> None:
    """With `moves` the portal comes back on another port, so the courier brings the rest."""
    with live(tmp_path) as first:
        job = first.submit(COUNTER.replace("0.05", "0.5"))
        come_to(first, job, "printing")
        first.supervisor.process.send_signal(how)
        first.supervisor.process.wait(60)
        said = first.supervisor.text
    if how is signal.SIGINT:
        assert "1 local job goes on" in said
    port = None if moves else first.port
    with live(tmp_path, home=first.home, port=port) as again:
        check(again, job)
    clean(first)
