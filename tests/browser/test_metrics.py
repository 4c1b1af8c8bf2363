"""The metrics of a job in a real browser: what agents post is drawn, and can be read as a table."""

import math
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, Page, expect

from jobs.models import Job
from portal.core import clock
from tests import people
from tests.browser.conftest import PASSWORD
from tests.jobs.makers import make_job, post

MEMORY = 80 * 2**30


@pytest.fixture
def world(transactional_db) -> people.World:
    return people.make_world()


@pytest.fixture
def ada(world) -> people.User:
    person = people.make_user("ada", password=PASSWORD)
    people.join(world.team, person, role="viewer")
    return person


@pytest.fixture
def now() -> float:
    return clock.now().timestamp()


def sample(at: float, *, gpus: int = 0, busy: float = 0.5) -> dict:
    series = {"cpu_utilization_ratio": busy, "agent_memory_bytes": 1.0}
    for gpu in range(gpus):
        series |= {
            f'gpu_utilization_ratio{{gpu="{gpu}"}}': busy,
            f'gpu_memory_used_bytes{{gpu="{gpu}"}}': busy * MEMORY,
            f'gpu_memory_total_bytes{{gpu="{gpu}"}}': MEMORY,
        }
    return {"at": at, "series": series}


def begun(seconds: float) -> dict:
    started_at = datetime.fromtimestamp(clock.now().timestamp() - seconds, UTC)
    return {"phase": "RUNNING", "started_at": started_at}


def rows(chart: Locator) -> Locator:
    return chart.locator("tbody tr")


def test_figures_appear_as_they_are_posted(page: Page, portal, sign_in, world, ada, now) -> None:
    """Buys the whole way: store, hint, socket, chart; and why there is none before."""
    job, token = make_job(world)
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("link", name="Metrics").click()
    expect(page.get_by_text("it has not started")).to_be_visible()
    expect(page.locator(".chart")).to_have_count(0)
    Job.objects.filter(pk=job.pk).update(**begun(10))
    page.reload()
    expect(page.get_by_text("its agent has not been heard")).to_be_visible()
    post(token, samples=[sample(now - 5, gpus=1, busy=0.25)], agent={"version": "1"})
    busy = page.locator("#chart-gpu")
    expect(rows(busy)).to_contain_text(["GPU 0"])
    expect(busy.locator(".now")).to_have_text("25 %")
    expect(page.locator("#chart-gpu-memory .now")).to_have_text("20 GiB of 80 GiB")
    expect(page.locator("[data-metrics=live]")).to_have_text("Live")
    expect(page.locator("#metrics-why")).not_to_be_visible()
    post(token, samples=[sample(now, gpus=1, busy=0.75)])
    expect(busy.locator(".now")).to_have_text("75 %")
    expect(rows(busy).locator("td").nth(3)).to_have_text("50 %")
    expect(busy.get_by_role("img", name="lowest 25 %, highest 75 %")).to_be_visible()
    assert page.locator("figure.chart h2").all_inner_texts() == [
        "GPU busy",
        "GPU memory",
        "CPU busy",
    ]


def test_the_crosshair_fills_every_table_and_names_events(
    page, portal, sign_in, world, ada, now
) -> None:
    job, token = make_job(world, **begun(300))
    post(token, samples=[sample(now - age, gpus=2, busy=age / 300) for age in range(5, 300, 5)])
    saved = {"name": "step-100", "at": now - 150, "seconds": 1.2, "bytes": 12_000_000}
    post(token, checkpoints=[saved])
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}/metrics")
    over = page.locator("#chart-cpu .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    for chart in ("gpu", "cpu"):
        crossed = rows(page.locator(f"#chart-{chart}")).first.locator("td").nth(1)
        expect(crossed).to_have_text("50 %")
    found = ""
    for step in range(-60, 60, 4):
        page.mouse.move(box["x"] + box["width"] / 2 + step, box["y"] + 20)
        found = found or page.locator("[data-metrics=event]").inner_text()
    assert "Checkpoint step-100 complete, 12 MB in 1.2 s" in found
    page.locator("#chart-gpu .plot-canvas").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#chart-gpu thead th").nth(1)).not_to_have_text("Crosshair")


def test_many_gpus_are_a_heat_map_and_a_node_can_be_picked(
    page, portal, sign_in, world, ada, now
) -> None:
    job, token = make_job(world, nodes=4, gpus=32, **begun(60))
    for rank in range(4):
        busy = 0.2 * (rank + 1)
        post(token, rank=rank, samples=[sample(now - 4, gpus=8, busy=busy)])
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}/metrics")
    expect(page.locator(".heat .cell")).to_have_count(32)
    expect(page.locator(".heat-node").nth(3).locator(".cell").first).to_have_text("80")
    busy = page.locator("#chart-gpu")
    expect(rows(busy)).to_have_count(4)
    expect(rows(busy).nth(1)).to_contain_text("Node 1, mean of its GPUs")
    expect(busy.locator(".now")).to_have_text("50 %")
    page.get_by_role("button", name="Node 2").click()
    expect(rows(busy)).to_have_count(8)
    expect(busy.locator(".now")).to_have_text("60 %")
    page.get_by_role("button", name="Show all nodes").click()
    expect(rows(busy)).to_have_count(4)


def test_ranges_of_a_job_that_has_ended_and_its_gap(page, portal, sign_in, world, ada, now) -> None:
    job, token = make_job(world, **begun(1800))
    ages = [age for age in range(5, 1800, 5) if not 600 < age < 900]
    samples = [sample(now - age, busy=1.0 if age > 1700 else 0.2) for age in ages]
    for begin in range(0, len(samples), 100):
        post(token, samples=samples[begin : begin + 100])
    Job.objects.filter(pk=job.pk).update(phase="SUCCEEDED", ended_at=clock.now())
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}/metrics")
    expect(page.locator("[data-metrics=live]")).to_have_text("The job has ended")
    expect(page.get_by_role("button", name="All")).to_have_attribute("aria-pressed", "true")
    chart = page.locator("#chart-cpu")
    expect(chart.get_by_role("img", name="highest 100 %")).to_be_visible()
    box = chart.locator(".u-over").bounding_box()
    assert box is not None
    gap = box["x"] + box["width"] * (1 - 750 / 1800)
    page.mouse.move(gap, box["y"] + 20)
    expect(rows(chart).locator("td").nth(1)).to_have_text("–")
    page.get_by_role("button", name="Last 5 min").click()
    expect(chart.get_by_role("img", name="highest 20 %")).to_be_visible()


def test_another_theme_redraws_in_its_colours(page, portal, sign_in, world, ada, now) -> None:
    """Buys that a canvas, which knows no CSS, follows the theme."""
    job, token = make_job(world, **begun(60))
    post(token, samples=[sample(now - age, busy=math.sin(age) ** 2) for age in range(1, 60, 5)])
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}/metrics")
    expect(page.locator("#chart-cpu canvas")).to_be_visible()
    pixels = "() => document.querySelector('#chart-cpu canvas').toDataURL()"
    light = page.evaluate(pixels)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => ({pixels})() !== light", arg=light)


def test_checkpoints_are_in_the_story_the_older_ones_folded(
    page, portal, sign_in, world, ada, now
) -> None:
    job, token = make_job(world, **begun(600))
    saved = [
        {"name": f"step-{n}00", "at": now - 500 + n, "seconds": 1.2, "bytes": 12_000_000}
        for n in range(1, 101)
    ]
    post(token, checkpoints=saved)
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}/story")
    lines = page.locator(".story .ev b")
    expect(lines.filter(has_text="Checkpoint step-10000 complete, 12 MB in 1.2 s")).to_be_visible()
    expect(lines.filter(has_text="97 more checkpoints before")).to_be_visible()
    expect(lines.filter(has_text="heckpoint")).to_have_count(4)
