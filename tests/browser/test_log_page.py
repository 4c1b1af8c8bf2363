"""The log of a real job in a real browser: what agents post is seen, once and in order."""

import pytest
from playwright.sync_api import Page, expect

from tests import people
from tests.browser.conftest import PASSWORD
from tests.jobs.makers import ERR, OUT, chunk, make_job, post


@pytest.fixture
def world(transactional_db) -> people.World:
    return people.make_world()


@pytest.fixture
def ada(world) -> people.User:
    person = people.make_user("ada", password=PASSWORD)
    people.join(world.team, person, role="viewer")
    return person


def test_lines_appear_as_they_are_posted(page: Page, portal, sign_in, world, ada) -> None:
    """Buys the whole way: store, hint, socket, page."""
    job, token = make_job(world, phase="RUNNING")
    post(token, chunk(OUT, 0, b"first\nhalf "))
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}")
    lines = page.locator(".ln > code")
    expect(lines).to_have_text(["first", "half"])
    expect(page.locator(".log .live")).to_have_text("Live")
    post(token, chunk(ERR, 0, b"\x1b[31mRuntimeError: no\x1b[0m\n"))
    expect(lines).to_have_text(["first", "RuntimeError: no", "half"])
    expect(page.locator(".ln.stderr.err .a1")).to_have_text("RuntimeError: no")
    post(token, chunk(OUT, 11, b"and whole\n"))
    expect(lines).to_have_text(["first", "RuntimeError: no", "half and whole"])
    post(token, {"stream": OUT, "offset": 21, "at": 1.0, "gap": 5000, "reason": "spool_full"})
    post(token, chunk(OUT, 5021, b"after the gap\n"))
    expect(page.locator(".ln-gap")).to_contain_text("5,000 bytes of stdout are missing")
    expect(lines.last).to_have_text("after the gap")
    page.get_by_role("button", name="stderr").click()
    expect(lines).to_have_text(["RuntimeError: no"])
    page.get_by_role("button", name="All").click()
    page.goto(f"{portal}/jobs/{job.pk}#L3")
    expect(page.locator(".ln.picked > code")).to_have_text("half and whole")


def test_older_parts_and_search_reach_the_whole_log(page, portal, sign_in, world, ada) -> None:
    """Buys a link into, and a search through, a log of more than one load."""
    job, token = make_job(world, phase="RUNNING")
    offset = 0
    for part in range(8):
        data = b"".join(b"line %06d of part %d\n" % (n, part) for n in range(8000))
        post(token, chunk(OUT, offset, data))
        offset += len(data)
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}#L8001")
    expect(page.locator(".ln.picked > code")).to_have_text("line 000000 of part 1")
    page.get_by_label("Search the log").fill("007999 OF PART")
    expect(page.locator("[data-log=count]")).to_have_text("8 lines")
    page.keyboard.press("Enter")
    expect(page.locator(".ln", has=page.locator("mark.now"))).to_contain_text("part 0")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the whole log").click()
    assert download.value.path().stat().st_size == offset


def test_a_sign_out_elsewhere_ends_the_log(page, portal, sign_in, world, ada) -> None:
    """Buys that an open log shows nothing to who has signed out; within the socket's check."""
    job, token = make_job(world, phase="RUNNING")
    sign_in(page, portal, ada)
    page.goto(f"{portal}/jobs/{job.pk}")
    expect(page.locator(".log .live")).to_have_text("Live")
    other = page.context.new_page()
    other.goto(f"{portal}/me")
    other.locator("#act-signout").evaluate("(button) => button.click()")
    page.wait_for_url(f"{portal}/account/login/**", timeout=60_000)
    post(token, chunk(OUT, 0, b"never seen\n"))
    expect(page.get_by_text("never seen")).to_have_count(0)
