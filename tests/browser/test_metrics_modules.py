"""The pure parts of the charts in a browser: buckets, gaps, units, lines to tell apart."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.doubles.log import STATIC

ORIGIN = "http://localhost:9"
Run = Callable[..., Any]
CPU = "cpu_utilization_ratio"


@pytest.fixture
def run(chromium: Browser) -> Run:
    """Run the body of a function that sees the modules `frame`, `panels` and `units`."""
    page = chromium.new_page()

    def serve(route) -> None:
        file = STATIC / route.request.url.removeprefix(f"{ORIGIN}/")
        empty = {"body": "<!doctype html><title>x</title>", "content_type": "text/html"}
        route.fulfill(**({"path": file} if file.is_file() else empty))

    page.route(f"{ORIGIN}/**", serve)
    page.goto(ORIGIN)

    def call(body: str, given: Any = None) -> Any:
        head = "".join(
            f"const {name} = await import('/js/metrics/{name}.js');"
            for name in ("frame", "panels", "units")
        )
        return page.evaluate(f"async (given) => {{ {head} {body} }}", given)

    yield call
    page.close()


def answer(step: int = 5, **series: list) -> dict:
    return {"step_seconds": step, "series": series, "events": []}


def at(seconds: int) -> str:
    return f"2026-11-30T12:{seconds // 60:02}:{seconds % 60:02}Z"


def test_samples_go_on_where_rest_ended_and_a_long_pause_is_a_gap(run) -> None:
    given = {
        "answer": answer(**{CPU: [[at(0), 0.5], [at(5), 0.7]]}),
        "samples": [{"at": at(s), "series": {CPU: v}} for s, v in ((10, 0.9), (60, 0.1))],
    }
    values = run(
        "const f = new frame.Frame(given.answer); given.samples.forEach((s) => f.add(s));"
        f"const line = {{ keys: ['{CPU}'], fold: 'mean' }}; const places = f.places([line]);"
        "return [places.map((at) => at - places[0]), f.values(line, places)];",
        given,
    )
    assert values == [[0, 5, 10, 15, 60], [0.5, 0.7, 0.9, None, 0.1]]


def test_a_sample_in_a_coarse_bucket_is_weighed_with_what_is_there(run) -> None:
    given = {
        "answer": answer(10, **{CPU: [[at(0), 0.6]]}),
        "sample": {"at": at(9), "series": {CPU: 0.9}},
    }
    body = "const f = new frame.Frame(given.answer); f.add(given.sample);"
    value = run(f"{body} return [...f.series.get('{CPU}').values()][0].value;", given)
    assert value == pytest.approx(0.7)


@pytest.mark.parametrize(("fold", "value"), [("sum", 5), ("mean", 2.5), ("max", 3), ("min", 2)])
def test_folding_holds_a_value_until_the_next_sample(run, fold, value) -> None:
    given = answer(a=[[at(0), 2]], b=[[at(0), 1], [at(5), 3]])
    values = run(
        f"const f = new frame.Frame(given); const line = {{ keys: ['a', 'b'], fold: '{fold}' }};"
        "return f.values(line, f.places([line]));",
        given,
    )
    assert values[1] == value


def keys(gpus: int, ranks: int) -> list[str]:
    name = "gpu_utilization_ratio"
    if ranks == 1:
        return [f'{name}{{gpu="{gpu}"}}' for gpu in range(gpus)]
    return [f'{name}{{gpu="{g}",rank="{r}"}}' for r in range(ranks) for g in range(gpus)]


@pytest.mark.parametrize(
    ("gpus", "ranks", "node", "labels"),
    [
        (1, 1, None, ["GPU 0"]),
        (2, 2, None, ["Node 0, GPU 0", "Node 0, GPU 1", "Node 1, GPU 0", "Node 1, GPU 1"]),
        (8, 2, None, ["Node 0", "Node 1"]),
        (8, 2, 1, [f"GPU {gpu}" for gpu in range(8)]),
        (8, 12, None, ["All 96 GPUs"]),
        (16, 1, None, ["All 16 GPUs"]),
        (0, 1, None, []),
    ],
)
def test_at_most_eight_lines_can_be_told_apart(run, gpus, ranks, node, labels) -> None:
    found = run(
        "return panels.linesOf(panels.PANELS[0], given.keys, given.node ?? undefined)"
        ".map(({ label }) => label);",
        {"keys": keys(gpus, ranks), "node": node},
    )
    assert found == labels


@pytest.mark.parametrize(
    ("unit", "most", "value", "words"),
    [
        ("ratio", 1, 0.42, "42 %"),
        ("bytes", 80 * 2**30, 70.25 * 2**30, "70.3 GiB"),
        ("bits", 1.2e9, 1.25e8, "1 Gbit/s"),
        ("watts", 700, 655.4, "655 W"),
        ("seconds", 0.003, 0.0021, "2.1 ms"),
        ("bytes", 0, 0, "0 B"),
    ],
)
def test_figures_are_in_the_unit_of_the_largest(run, unit, most, value, words) -> None:
    given = {"unit": unit, "most": most, "value": value}
    body = "const s = units.scaleOf(given.unit, given.most);"
    assert run(f"{body} return units.words(given.value / s.size, s);", given) == words
