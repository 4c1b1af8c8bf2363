"""Who starts, who waits and why, and what is refused for good."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.admission import PATIENCE, Demand, Limits, Waiting, admit, refusal

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def job(
    name: str, *, nodes: int = 1, gpus: int = 0, kind: str = "", age: int = 0, priority: int = 0
):
    demand = Demand(nodes=nodes, gpus=gpus, gpu_type=kind)
    queued_at = NOW - timedelta(seconds=age)
    return Waiting(id=name, demand=demand, priority=priority, queued_at=queued_at)


def admitted(line, *, live=(), **limits) -> list[str]:
    verdicts = admit(line, limits=Limits(**limits), live=list(live), now=NOW)
    return [verdict.id for verdict in verdicts if verdict.is_admitted]


@pytest.mark.parametrize(
    ("demand", "limits", "limit", "fits"),
    [
        (Demand(nodes=2, gpus=16), {"gpus": 8}, "gpus", "Up to 8 GPUs, such as 1 node × 8 GPUs"),
        (Demand(nodes=4, gpus=0), {"nodes": 2}, "nodes", "Up to 2 nodes"),
        (
            Demand(nodes=1, gpus=8, gpu_type="b200"),
            {"gpus": 64, "gpus_by_type": {"b200": 0}},
            "gpus_by_type.b200",
            "Up to 0 B200 GPUs",
        ),
    ],
)
def test_what_is_larger_than_a_whole_limit_is_refused_with_what_fits(
    demand, limits, limit, fits
) -> None:
    found = refusal(demand, limits=Limits(**limits))
    assert found is not None
    assert found.limit == limit
    assert found.fits.startswith(fits)


@pytest.mark.parametrize(
    "limits", [{}, {"gpus": 8}, {"running_jobs": 0}, {"gpus_by_type": {"h100": 0}}]
)
def test_what_could_start_one_day_is_not_refused(limits) -> None:
    assert refusal(Demand(nodes=1, gpus=8, gpu_type="a100"), limits=Limits(**limits)) is None


def test_priority_goes_before_age() -> None:
    line = [job("old", gpus=4, age=99), job("new", gpus=4, priority=1), job("newest", gpus=4)]
    assert admitted(line, gpus=8) == ["new", "old"]


def test_what_lives_counts() -> None:
    live = [Demand(nodes=1, gpus=4, gpu_type="h100"), Demand(nodes=1, gpus=2, gpu_type="a100")]
    line = [job("h", gpus=4, kind="h100"), job("a", gpus=2, kind="a100")]
    assert admitted(line, live=live, gpus_by_type={"h100": 4}) == ["a"]
    assert admitted(line, live=live, gpus=8) == ["a"]
    assert admitted(line, live=live, running_jobs=3) == ["a"]


def test_a_small_job_passes_a_large_one_until_that_has_waited_long() -> None:
    small = job("small", gpus=1)
    live = [Demand(nodes=1, gpus=4)]
    young = job("large", gpus=8, age=60)
    patient = job("large", gpus=8, age=int(PATIENCE.total_seconds()))
    assert admitted([young, small], live=live, gpus=8) == ["small"]
    assert admitted([patient, small], live=live, gpus=8) == []
    assert admitted([patient, small], gpus=8) == ["large"]


def test_a_paused_team_waits_and_says_so() -> None:
    verdict = admit([job("a")], limits=Limits(running_jobs=0), live=[], now=NOW)[0]
    assert "paused" in verdict.message
    assert verdict.advice


def test_a_wait_names_what_would_fit() -> None:
    live = [Demand(nodes=1, gpus=6)]
    verdict = admit([job("a", gpus=4)], limits=Limits(gpus=8), live=live, now=NOW)[0]
    assert verdict.message == "It needs 4 GPUs; 2 of the team's 8 are free."
    assert verdict.advice == "A job with 2 GPUs could start now."


demands = st.builds(
    Demand,
    nodes=st.integers(1, 4),
    gpus=st.integers(0, 16),
    gpu_type=st.sampled_from(["", "h100", "a100"]),
)
waiting = st.builds(
    Waiting,
    id=st.uuids().map(str),
    demand=demands,
    priority=st.integers(-1, 1),
    queued_at=st.integers(0, 7200).map(lambda s: NOW - timedelta(seconds=s)),
)
counts = st.none() | st.integers(0, 20)
limits = st.builds(
    Limits,
    gpus=counts,
    nodes=counts,
    running_jobs=counts,
    gpus_by_type=st.dictionaries(st.sampled_from(["h100", "a100"]), st.integers(0, 16)),
)


@given(st.lists(waiting, max_size=8), limits)
def test_no_limit_is_ever_exceeded_and_everybody_gets_a_verdict(line, limits) -> None:
    verdicts = admit(line, limits=limits, live=[], now=NOW)
    assert {v.id for v in verdicts} == {w.id for w in line}
    by_id = {w.id: w.demand for w in line}
    started = [by_id[v.id] for v in verdicts if v.is_admitted]
    within = [
        (limits.gpus, sum(d.gpus for d in started)),
        (limits.nodes, sum(d.nodes for d in started)),
        (limits.running_jobs, len(started)),
    ]
    for kind, most in limits.gpus_by_type.items():
        within.append((most, sum(d.gpus for d in started if d.gpu_type == kind)))
    assert all(most is None or used <= most for most, used in within)
    assert all(v.is_admitted or (v.reason and v.message and v.advice) for v in verdicts)
