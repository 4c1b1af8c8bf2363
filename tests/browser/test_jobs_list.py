"""The list of jobs and the launch form in a real browser, while jobs move."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from clusters import services as clusters
from clusters.selectors import facts_of
from jobs.models import Job, JobDefinition
from jobs.selectors import newest_of
from jobs.services import definitions, jobs
from jobs.services.jobs import Wanted
from portal.core import clock, push
from portal.teams.models import User
from tests import people
from tests.browser.conftest import PASSWORD

SPEC = {
    "regime": "smoke",
    "time_limit_seconds": 3600,
    "script": "echo {{ text }}",
    "parameters": {"text": {"type": "string", "default": "world"}},
}


@pytest.fixture
def ada(transactional_db) -> User:
    return people.make_user("ada", password=PASSWORD)


@pytest.fixture
def train(ada) -> JobDefinition:
    world = people.make_world()
    clusters.ensure_local().teams.add(world.team)
    people.join(world.team, ada, role="member")
    manager = world.actor("manager")
    return definitions.create_definition(manager, world.team, slug="train", name="Train", spec=SPEC)


def submit(ada: User, train: JobDefinition, name: str) -> Job:
    wanted = Wanted(
        version=newest_of(train),
        team=train.team,
        cluster=facts_of(clusters.ensure_local()),
        name=name,
    )
    return jobs.submit(people.actor_of(ada), wanted)


def change(job: Job, **columns: Any) -> None:
    """Change a job as its reconciler would, with the hint to the pages that show it."""
    Job.objects.filter(pk=job.pk).update(**columns)
    push.hint(f"team.{job.team_id}", kind="job", job=job.pk)


def test_rows_change_in_place_and_newer_ones_wait_to_be_shown(
    page: Page, portal, ada, train, sign_in
) -> None:
    first, second = (submit(ada, train, name) for name in ("first", "second"))
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs")
    expect(page.locator(".live[data-feed]")).to_have_text("Live")
    row = page.locator(f"#job-{first.pk}")
    row.get_by_role("checkbox").check()
    row.get_by_role("link").focus()
    before = row.bounding_box()
    page.evaluate(f"document.getElementById('job-{first.pk}').dataset.same = 'yes'")
    change(first, message="The machine is full.", reason="waiting_for_capacity")
    expect(row).to_contain_text("The machine is full.")
    change(first, phase="RUNNING", reason="", message="", started_at=clock.now())
    expect(row.locator(".state")).to_have_text("Running")
    expect(row).to_have_attribute("data-same", "yes")
    expect(row.get_by_role("checkbox")).to_be_checked()
    expect(row.get_by_role("link")).to_be_focused()
    assert row.bounding_box() == before
    for name in ("third", "fourth"):
        submit(ada, train, name)
    expect(page.locator("#newer")).to_have_text("2 newer jobs arrived. Show them")
    assert row.bounding_box() == before
    names = page.locator("tbody .lead a")
    expect(names).to_have_text(["second", "first"])
    page.get_by_role("link", name="Show them").click()
    expect(names).to_have_text(["fourth", "third", "second", "first"])
    change(second, phase="FAILED", reason="exit_code", exit_code=137, ended_at=clock.now())
    expect(page.locator(f"#job-{second.pk}")).to_contain_text("signal 9")
    expect(page.locator(f"#job-{second.pk}").get_by_role("checkbox")).to_have_count(0)


def test_a_row_that_leaves_the_filter_says_so_and_stays(
    page: Page, portal, ada, train, sign_in
) -> None:
    job = submit(ada, train, "only")
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs?phase=QUEUED,ADMITTED,SUBMITTED")
    expect(page.locator(".live[data-feed]")).to_have_text("Live")
    change(job, phase="SUCCEEDED", reason="completed", exit_code=0, ended_at=clock.now())
    expect(page.locator(f"#job-{job.pk} .state")).to_have_text("Succeeded")


def test_ticked_jobs_stop_together(page: Page, portal, ada, train, sign_in) -> None:
    made = [submit(ada, train, f"job {number}") for number in range(5)]
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs?q=job")
    boxes = page.locator("tbody input[type=checkbox]")
    expect(page.locator("#stop-jobs")).to_be_hidden()
    before = page.locator("tbody").bounding_box()
    boxes.nth(0).click()
    expect(page.locator("#stop-jobs")).to_be_visible()
    assert page.locator("tbody").bounding_box() == before
    boxes.nth(3).click(modifiers=["Shift"])
    boxes.nth(1).click()
    page.get_by_role("button", name="Stop 3 jobs").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Stop 3 jobs?")
    dialog.get_by_role("button", name="Stop 3 jobs").click()
    expect(page.locator(".toast")).to_contain_text("3 jobs are asked to stop.")
    assert page.url == f"{portal}/jobs?q=job"
    stopped = set(Job.objects.exclude(stop_reason="").values_list("pk", flat=True))
    assert stopped == {made[4].pk, made[2].pk, made[1].pk}


def test_rows_are_walked_with_keys(page: Page, portal, ada, train, sign_in) -> None:
    older, newer = submit(ada, train, "older"), submit(ada, train, "newer")
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="newer", exact=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{portal}/jobs/{older.pk}")
    assert newer.pk > older.pk


def test_a_preview_follows_what_is_typed(page: Page, portal, ada, train, sign_in) -> None:
    sign_in(page, portal, ada)
    page.goto(f"{portal}/definitions/{train.pk}/launch")
    preview = page.locator("#preview")
    expect(preview).to_contain_text("It would start")
    page.get_by_text("The same from a terminal").click()
    page.get_by_label("text").fill("it's $HOME")
    expect(page.locator("#preview-cli")).to_contain_text("-p 'text=it'\"'\"'s $HOME'")
    page.get_by_label("Time limit").fill("20 min")
    expect(preview).to_contain_text("20 min (1200 s)")
    page.get_by_label("Time limit").fill("soon")
    expect(preview).to_contain_text("1 thing to mend")
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.get_by_label("Time limit")).to_be_focused()
    assert not Job.objects.exists()
    page.get_by_label("Time limit").fill("1 min")
    page.get_by_role("button", name="Preview").click()
    expect(preview).to_contain_text("1 min (60 s)")
    page.get_by_role("button", name="Launch", exact=True).click()
    page.wait_for_url(re.compile(rf"{portal}/jobs/\w+$"))
    job = Job.objects.get()
    assert (job.parameters, job.time_limit_seconds) == ({"text": "it's $HOME"}, 60)


def test_a_job_runs_again_with_changes(page: Page, portal, ada, train, sign_in) -> None:
    job = submit(ada, train, "tuned")
    Job.objects.update(phase="FAILED", parameters={"text": "first"}, ended_at=clock.now())
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("link", name="Run again with changes").click()
    expect(page.get_by_label("text")).to_have_value("first")
    page.get_by_label("text").fill("second")
    page.get_by_role("button", name="Launch", exact=True).click()
    page.wait_for_url(re.compile(rf"{portal}/jobs/\w+$"))
    newest = Job.objects.order_by("-pk").first()
    assert newest is not None
    assert (newest.name, newest.parameters) == ("tuned", {"text": "second"})


def test_a_cluster_is_checked_on_its_page(page: Page, portal, ada, train, sign_in) -> None:
    sign_in(page, portal, ada)
    page.goto(f"{portal}/clusters/local")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#check")).to_contain_text("5 of 5 hold")
    expect(page.locator("#check")).to_contain_text("python3")
    assert page.url == f"{portal}/clusters/local"
