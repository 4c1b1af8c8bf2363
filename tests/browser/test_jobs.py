"""A job's page in a real browser, while the job moves."""

import pytest
from playwright.sync_api import Page, expect

from clusters import services as clusters
from clusters.selectors import facts_of
from jobs.models import Job
from jobs.selectors import newest_of
from jobs.services import definitions, jobs
from jobs.services.jobs import Wanted
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


def test_a_job_stops_though_its_page_moved_while_the_question_stood(
    page: Page, portal, root, sign_in, job: Job
) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Stop Count?")
    Job.objects.filter(pk=job.pk).update(message="The machine is full.")
    expect(page.locator("#job")).to_contain_text("The machine is full.")
    page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#job")).to_contain_text("Asked to stop.")


def test_a_jobs_page_keeps_moving_and_keeps_the_focus(
    page: Page, portal, root, sign_in, job: Job
) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/jobs/{job.pk}")
    page.get_by_role("button", name="Copy").focus()
    Job.objects.filter(pk=job.pk).update(message="The machine is full.")
    expect(page.locator("#job")).to_contain_text("The machine is full.")
    expect(page.get_by_role("button", name="Copy")).to_be_focused()


def test_a_launch_without_a_cluster_says_whom_to_ask(page: Page, portal, sign_in, job: Job) -> None:
    type(job.cluster).objects.update(is_shared=False)
    job.cluster.teams.clear()
    ada = people.make_user("ada", password=PASSWORD)
    people.join(job.team, ada, role="member")
    sign_in(page, portal, ada)
    page.goto(f"{portal}/definitions/{job.version.definition_id}/launch")
    expect(page.locator("main .note")).to_contain_text("Ask a site admin to assign one")
