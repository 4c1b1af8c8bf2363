"""The contract of every scheduler, on the double and on the real ones alike."""

import pytest

from clusters.schedulers.contract import Ending, Signal, Stage
from portal.core.errors import Rejected, Unavailable
from tests.contracts import schedulers


@pytest.fixture(params=["double", "local"])
def bench(request, tmp_path):
    return getattr(schedulers, f"of_{request.param}")(tmp_path)


def test_a_job_runs_and_is_done(bench) -> None:
    seen = bench.ended(bench.submit("true"))
    assert (seen.ending, seen.exit_code, seen.signal) == (Ending.COMPLETED, 0, None)
    assert seen.started_at <= seen.ended_at
    assert seen.nodes


def test_twice_is_once(bench) -> None:
    request = bench.request("sleep 30")
    first = bench.scheduler.submit(request)
    bench.running(request.key)
    assert bench.again().submit(request) == first
    assert bench.scheduler.submit(request) == first
    assert list(bench.scheduler.observe([request.key])) == [request.key]
    bench.scheduler.cancel(request.key)
    bench.ended(request.key)
    assert bench.scheduler.submit(request) == first
    assert bench.scheduler.observe([request.key])[request.key].stage is Stage.ENDED


@pytest.mark.parametrize("code", [1, 2, 127, 255])
def test_exit_codes_are_told(bench, code) -> None:
    seen = bench.ended(bench.submit(f"exit {code}"))
    assert (seen.ending, seen.exit_code) == (Ending.EXIT_CODE, code)


def test_a_signal_is_no_exit_code(bench) -> None:
    seen = bench.ended(bench.submit("kill -9 $$"))
    assert (seen.ending, seen.exit_code, seen.signal) == (Ending.EXIT_CODE, None, 9)


def test_what_was_never_submitted_is_absent(bench) -> None:
    assert bench.scheduler.observe(["01JNOBODY-1"]) == {}


def test_not_being_able_to_look_is_not_absence(bench) -> None:
    key = bench.submit("true")
    bench.take_away()
    with pytest.raises(Unavailable):
        bench.scheduler.observe([key])
    with pytest.raises(Unavailable):
        bench.scheduler.submit(bench.request("true"))


def test_many_are_seen_in_one_look(bench) -> None:
    keys = [bench.submit("exit 3") for _ in range(5)]
    for key in keys:
        bench.ended(key)
    seen = bench.scheduler.observe([*keys, "01JNOBODY-1"])
    assert set(seen) == set(keys)
    assert {s.exit_code for s in seen.values()} == {3}


def test_another_instance_sees_the_same(bench) -> None:
    key = bench.submit("sleep 30")
    seen = bench.running(key)
    assert bench.again().observe([key])[key] == seen
    bench.again().cancel(key)
    assert bench.ended(key).ending is Ending.CANCELLED


def test_cancel_is_idempotent_at_any_time(bench) -> None:
    bench.scheduler.cancel("01JNOBODY-1")
    key = bench.submit("sleep 30")
    bench.running(key)
    for _ in range(3):
        bench.scheduler.cancel(key)
    assert bench.ended(key).ending is Ending.CANCELLED
    bench.scheduler.cancel(key)
    done = bench.submit("true")
    bench.ended(done)
    bench.scheduler.cancel(done)
    assert bench.scheduler.observe([done])[done].ending is Ending.COMPLETED


def test_a_job_may_be_cancelled_before_anybody_looked(bench) -> None:
    key = bench.submit("sleep 30")
    bench.scheduler.cancel(key)
    assert bench.ended(key).ending is Ending.CANCELLED


def test_a_first_signal_reaches_the_job_and_does_not_count_as_cancelled(bench) -> None:
    key = bench.submit("sleep 30")
    bench.running(key)
    bench.scheduler.cancel(key, Signal.USR1)
    seen = bench.ended(key)
    assert (seen.ending, seen.signal) == (Ending.EXIT_CODE, 10)


def test_kill_ends_what_ignores_everything_else(bench) -> None:
    key = bench.submit("trap '' TERM USR1\nwhile :; do sleep 30; done")
    bench.running(key)
    bench.scheduler.cancel(key, Signal.KILL)
    assert bench.ended(key).signal == 9


def test_the_time_limit_ends_a_job(bench) -> None:
    seen = bench.ended(bench.submit("sleep 30", time_limit_seconds=1))
    assert seen.ending is Ending.TIME_LIMIT


def test_what_can_never_run_is_rejected_with_what_fits(bench) -> None:
    with pytest.raises(Rejected) as caught:
        bench.submit("true", resources=bench.too_large)
    assert any(letter.isdigit() for letter in caught.value.message)


def test_equal_looks_are_equal_values(bench) -> None:
    key = bench.submit("sleep 30")
    seen = bench.running(key)
    assert bench.scheduler.observe([key])[key] == seen
    bench.scheduler.cancel(key)
    bench.ended(key)
