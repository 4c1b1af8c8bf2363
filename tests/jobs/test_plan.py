"""The next step of a job: a table, and properties over any snapshot."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.schedulers.contract import Ending, Seen, Signal, Stage
from jobs.plan import LOST_AFTER, Cancel, Go, Snapshot, Submit, Wait, key_of, plan
from jobs.states import FINAL, Phase, Reason, end_of, may_go

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
PENDING = Seen(external_id="1", stage=Stage.PENDING)
RUNNING = Seen(external_id="1", stage=Stage.RUNNING, started_at=NOW - SECOND, nodes=("n1",))
DONE = Seen(external_id="1", stage=Stage.ENDED, ending=Ending.COMPLETED, exit_code=0)
BROKE = Seen(external_id="1", stage=Stage.ENDED, ending=Ending.EXIT_CODE, exit_code=3)
GONE = Seen(external_id="1", stage=Stage.ENDED, ending=Ending.NODE_FAILURE)
CUT = Seen(external_id="1", stage=Stage.ENDED, ending=Ending.CANCELLED, signal=15)


def job(phase: Phase, **columns: object) -> Snapshot:
    return replace(Snapshot(now=NOW, phase=phase, time_limit=HOUR), **columns)


def queued(**c: object) -> Snapshot:
    return job(Phase.QUEUED, **c)


def submitted(**c: object) -> Snapshot:
    return job(Phase.SUBMITTED, submitted_at=NOW - HOUR, **c)


def running(**c: object) -> Snapshot:
    return job(Phase.RUNNING, started_at=NOW - 10 * SECOND, seen=c.pop("seen", RUNNING), **c)


def stopping(**c: object) -> Snapshot:
    return job(
        Phase.STOPPING,
        stop_reason=c.pop("stop_reason", Reason.USER),
        seen=c.pop("seen", RUNNING),
        **c,
    )


@pytest.mark.parametrize(
    ("snapshot", "kind", "facts"),
    [
        (queued(), Wait, {"due_in": None}),
        (queued(stop_reason=Reason.USER), Go, {"phase": Phase.CANCELLED, "reason": Reason.USER}),
        (job(Phase.ADMITTED), Submit, {}),
        (job(Phase.ADMITTED, stop_reason=Reason.USER), Go, {"phase": Phase.STOPPING}),
        (
            job(Phase.ADMITTED, admitted_at=NOW - HOUR, max_pending=SECOND),
            Go,
            {"phase": Phase.STOPPING, "reason": Reason.NO_CAPACITY},
        ),
        (submitted(seen=PENDING), Wait, {}),
        (submitted(seen=RUNNING), Go, {"phase": Phase.RUNNING, "nodes": ("n1",)}),
        (submitted(seen=DONE), Go, {"phase": Phase.SUCCEEDED, "reason": Reason.COMPLETED}),
        (submitted(seen=PENDING, max_pending=SECOND), Go, {"reason": Reason.NO_CAPACITY}),
        (running(), Wait, {}),
        (running(seen=PENDING), Go, {"phase": Phase.SUBMITTED, "next_restart": True}),
        (running(seen=DONE), Go, {"phase": Phase.SUCCEEDED, "exit_code": 0}),
        (running(seen=BROKE), Go, {"phase": Phase.FAILED, "exit_code": 3}),
        (running(stop_reason=Reason.IDLE), Go, {"phase": Phase.STOPPING, "reason": Reason.IDLE}),
        (
            running(time_limit=10 * SECOND),
            Go,
            {"phase": Phase.STOPPING, "reason": Reason.TIME_LIMIT},
        ),
        (running(time_limit=11 * SECOND), Wait, {"due_in": SECOND}),
        (
            running(absent_since=NOW - LOST_AFTER),
            Go,
            {"phase": Phase.FAILED, "reason": Reason.LOST},
        ),
        (running(absent_since=NOW - SECOND), Wait, {"due_in": LOST_AFTER - SECOND}),
        (stopping(), Cancel, {"signal": None}),
        (stopping(checkpoint_signal=Signal.USR1), Cancel, {"signal": Signal.USR1}),
        (stopping(seen=PENDING, checkpoint_signal=Signal.USR1), Cancel, {"signal": None}),
        (stopping(signalled_at=NOW - SECOND), Wait, {"due_in": 29 * SECOND}),
        (stopping(signalled_at=NOW - 30 * SECOND), Cancel, {"signal": None}),
        (stopping(seen=CUT, cancelled_at=NOW), Go, {"phase": Phase.CANCELLED, "signal": 15}),
        (stopping(seen=DONE, cancelled_at=NOW), Go, {"phase": Phase.CANCELLED, "exit_code": 0}),
        (stopping(seen=DONE), Go, {"phase": Phase.SUCCEEDED}),
        (stopping(seen=BROKE), Go, {"phase": Phase.FAILED, "reason": Reason.EXIT_CODE}),
        (stopping(seen=None, absent_since=NOW - HOUR), Cancel, {"signal": None}),
        (
            stopping(seen=None, absent_since=NOW - HOUR, cancelled_at=NOW - HOUR),
            Go,
            {"phase": Phase.CANCELLED},
        ),
        (stopping(cancelled_at=NOW - LOST_AFTER), Cancel, {"signal": Signal.KILL}),
        (
            stopping(stop_reason=Reason.TIME_LIMIT, seen=CUT, signalled_at=NOW),
            Go,
            {"phase": Phase.FAILED, "reason": Reason.TIME_LIMIT},
        ),
    ],
)
def test_the_next_step(snapshot, kind, facts) -> None:
    step = plan(snapshot)
    assert isinstance(step, kind), step
    assert {name: getattr(step, name) for name in facts} == facts


RETRY = {"max_attempts": 2, "retry_on": {Reason.NODE_FAILURE, Reason.LOST}}


@pytest.mark.parametrize(
    ("snapshot", "again"),
    [
        (running(seen=GONE, **RETRY), True),
        (running(seen=GONE, attempt=2, **RETRY), False),
        (running(seen=BROKE, **RETRY), False),
        (running(seen=DONE, **RETRY), False),
        (running(absent_since=NOW - LOST_AFTER, **RETRY), True),
        (running(seen=GONE, stop_reason=Reason.USER, **RETRY), False),
    ],
)
def test_another_attempt_is_made_for_the_reasons_that_the_definition_names(snapshot, again) -> None:
    step = plan(snapshot)
    assert isinstance(step, Go)
    assert step.next_attempt is again
    assert (step.phase is Phase.QUEUED) is again


instants = st.none() | st.integers(-7200, 0).map(lambda s: NOW + timedelta(seconds=s))
seens = st.none() | st.builds(
    Seen,
    external_id=st.just("1"),
    stage=st.sampled_from(Stage),
    ending=st.none() | st.sampled_from(Ending),
    started_at=instants,
    ended_at=instants,
)
snapshots = st.builds(
    Snapshot,
    now=st.just(NOW),
    phase=st.sampled_from(Phase),
    attempt=st.integers(1, 3),
    max_attempts=st.integers(1, 3),
    retry_on=st.sets(st.sampled_from(Reason)),
    time_limit=st.integers(1, 7200).map(lambda s: timedelta(seconds=s)),
    stop_reason=st.none() | st.sampled_from([Reason.USER, Reason.IDLE, Reason.BUDGET_EXHAUSTED]),
    checkpoint_signal=st.none() | st.sampled_from(Signal),
    submitted_at=instants,
    started_at=instants,
    seen=seens,
    absent_since=instants,
    signalled_at=instants,
    cancelled_at=instants,
)


@given(snapshots)
def test_every_step_is_an_edge_and_every_end_follows_from_its_reason(snapshot) -> None:
    step = plan(snapshot)
    if isinstance(step, Go):
        assert may_go(snapshot.phase, step.phase), (snapshot.phase, step.phase)
        if step.phase in FINAL:
            assert step.reason is not None
            assert end_of(step.reason) is step.phase
    if isinstance(step, Wait) and step.due_in is not None:
        assert step.due_in > timedelta(0)
    if snapshot.phase in FINAL:
        assert step == Wait(due_in=None)


def test_each_attempt_has_a_key_of_its_own() -> None:
    assert key_of("01J", attempt=2) == "01J-2"
