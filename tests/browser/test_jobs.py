"""A job's page in a real browser, while the job moves."""

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from clusters import services as clusters
from clusters.selectors import facts_of
from jobs.models import Job
from jobs.selectors import newest_of
from jobs.services import definitions, jobs
from jobs.services.jobs import Wanted
from portal.core import clock, push
from tests import people
from tests.browser.conftest import PASSWORD


@pytest.fixture
def root(transactional_db):
    return people.make_user("root", site_role="admin", password=PASSWORD)


@pytest.fixture
def job(root) -> Job:
    """A job that waits in its queue."""
    world = people.make_world()
    clusters.ensure_local().teams.add(world.team)
    spec = {"regime": "smoke", "time_limit_seconds": 60, "script": "sleep 50"}
    row = definitions.create_definition(
        world.actor("manager"), world.team, slug="count", name="Count", spec=spec
    )
    wanted = Wanted(
        version=newest_of(row), team=world.team, cluster=facts_of(clusters.ensure_local())
    )
    return jobs.submit(world.actor("member"), wanted)


def change(job: Job, **columns: Any) -> None:
    """Change a job as its reconciler would, with the hint to the pages that show it."""
    Job.objects.filter(pk=job.pk).update(**columns)
    push.hint(f"team.{job.team_id}", kind="job", job=job.pk)


def test_a_job_stops_though_its_page_moved_while_the_question_stood(
    page: Page, portal, root, sign_in, job: Job
) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Stop Count?")
    change(job, message="The machine is full.")
    expect(page.locator("#job-head")).to_contain_text("The machine is full.")
    page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#job-head")).to_contain_text("It is asked to stop")


def test_a_jobs_page_keeps_moving_and_keeps_the_focus(
    page: Page, portal, root, sign_in, job: Job
) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("button", name="Stop", exact=True).focus()
    change(job, message="The machine is full.")
    expect(page.locator("#job-head")).to_contain_text("The machine is full.")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_focused()


def test_a_launch_without_a_cluster_says_whom_to_ask(page: Page, portal, sign_in, job: Job) -> None:
    type(job.cluster).objects.update(is_shared=False)
    job.cluster.teams.clear()
    ada = people.make_user("ada", password=PASSWORD)
    people.join(job.team, ada, role="member")
    sign_in(page, portal, ada)
    page.goto(f"{portal}/definitions/{job.version.definition_id}/launch")
    expect(page.locator("main .note")).to_contain_text("Ask a site admin to assign one")


def test_the_head_moves_and_the_log_stays(page: Page, portal, root, sign_in, job: Job) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/jobs/{job.pk}")
    expect(page.locator(".log .live")).to_have_text("Live")
    page.evaluate("document.querySelector('.log-view').dataset.same = 'yes'")
    change(job, phase="RUNNING", started_at=clock.now() - timedelta(seconds=30))
    expect(page.locator("#job-head .pill")).to_have_text("Running")
    expect(page.locator("#job-head [data-elapsed]")).to_have_text(re.compile(r"^3\d s$"))
    expect(page.locator("#job-head .bar rect")).to_have_attribute("width", re.compile(r"^5\d"))
    change(job, stop_reason="user")
    expect(page.locator("#job-head .pill")).to_have_text("Stopping")
    change(job, phase="FAILED", reason="exit_code", exit_code=137, ended_at=clock.now())
    expect(page.locator("#job-head")).to_contain_text(
        "signal 9: killed, often because memory ran out"
    )
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    expect(page.locator(".log-view")).to_have_attribute("data-same", "yes")


def test_the_story_and_the_script_are_links(page: Page, portal, root, sign_in, job: Job) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("link", name="Story").click()
    page.wait_for_url(f"{portal}/jobs/{job.pk}/story")
    expect(page.locator(".story .ev")).to_have_count(1)
    expect(page.locator(".story")).to_contain_text("Launched by member")
    jobs.stop(people.actor_of(root), job)
    push.hint(f"team.{job.team_id}", kind="job", job=job.pk)
    expect(page.locator(".story .ev").first).to_contain_text("Asked to stop by root")
    page.get_by_role("link", name="Script and parameters").click()
    expect(page.locator("#job-script")).to_have_text("sleep 50")
