"""The whole portal without a mouse, and pages that change by themselves."""

import re

import pytest
from playwright.sync_api import Page, expect

from portal.teams.models import ApiToken, Membership, Team
from portal.teams.services import members
from tests import people
from tests.browser.conftest import PASSWORD


@pytest.fixture
def root(transactional_db):
    return people.make_user("root", site_role="admin", password=PASSWORD)


def test_the_palette_finds_people_and_goes_there(page: Page, portal, root, sign_in) -> None:
    team = people.make_team("vision", name="Vision")
    people.join(team, people.make_user("ada"), role="member")
    sign_in(page, portal, root)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("combobox", name="Search or jump to")
    expect(palette).to_be_focused()
    page.keyboard.type("visi")
    expect(page.get_by_role("option", name=re.compile("^Vision"))).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{portal}/teams/vision")


def test_letters_go_places_but_not_while_typing(page: Page, portal, root, sign_in) -> None:
    sign_in(page, portal, root)
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.wait_for_url(f"{portal}/admin/users")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("gd?t")
    assert page.url == f"{portal}/admin/users"
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("searchbox").blur()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_times_become_exact_in_the_readers_zone(page: Page, portal, root, sign_in) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/admin/users")
    time = page.locator("main time").first
    expect(time).to_have_text("just now")
    page.keyboard.press("t")
    expect(time).to_have_text(re.compile(r"\d:\d\d:\d\d"))
    page.keyboard.press("t")
    expect(time).to_have_text("just now")


def test_the_theme_stays_and_comes_from_the_server(page: Page, portal, root, sign_in) -> None:
    sign_in(page, portal, root)
    page.keyboard.press("Control+k")
    page.keyboard.type("theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    html = page.request.get(f"{portal}/me").text()
    assert 'data-theme="light"' in html


def test_from_an_empty_site_to_a_team_with_people(
    page: Page, portal, root, sign_in, chromium
) -> None:
    """Buys the first ten minutes of every new site, by keyboard and mouse."""
    sign_in(page, portal, root)
    page.get_by_role("link", name="Create a team").click()
    page.get_by_label("Name", exact=True).fill("Vision & Robotics")
    page.get_by_label("Name in addresses").fill("Vision")
    page.get_by_role("button", name="Create the team").click()
    expect(page.locator(".error")).to_contain_text("lower-case letters")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Vision & Robotics")
    expect(page.get_by_label("Name in addresses")).to_be_focused()
    page.get_by_label("Name in addresses").fill("vision")
    page.get_by_role("button", name="Create the team").click()
    page.wait_for_url(f"{portal}/teams/vision")
    page.get_by_label("E-mail").fill("new@example.org")
    page.get_by_role("button", name="Add", exact=True).click()
    link = page.locator("#invite-link").inner_text()
    guest = chromium.new_context()
    there = guest.new_page()
    there.goto(link)
    there.get_by_label("Your name").fill("New Person")
    there.get_by_label("Password").fill("short")
    there.get_by_role("button", name="Make the account and join").click()
    expect(there.locator(".error")).to_contain_text("at least 12")
    there.get_by_label("Password").fill(PASSWORD)
    there.get_by_role("button", name="Make the account and join").click()
    there.wait_for_url(f"{portal}/teams/vision")
    guest.close()
    joined = Membership.objects.get(user__email="new@example.org")
    assert (joined.role, joined.team.name) == ("member", "Vision & Robotics")


def test_a_token_is_shown_once_and_revoked_after_a_question(
    page: Page, portal, root, sign_in
) -> None:
    sign_in(page, portal, root)
    page.goto(f"{portal}/me")
    page.get_by_label("Name", exact=True).first.fill("CI")
    page.get_by_role("button", name="Make the token").click()
    text = page.locator("#new-token").inner_text()
    assert re.fullmatch(r"slw_[\w-]{43}", text)
    answer = page.request.get(f"{portal}/api/v1/me", headers={"Authorization": f"Bearer {text}"})
    assert answer.status == 200
    page.goto(f"{portal}/me")
    assert text not in page.content()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("Revoke the token CI?")
    page.keyboard.press("Escape")
    assert ApiToken.objects.get().revoked_at is None
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("heading", name="No tokens yet")).to_be_visible()
    assert ApiToken.objects.get().revoked_at is not None


def test_the_feed_shows_what_others_do_without_a_reload(page: Page, portal, root, sign_in) -> None:
    team = people.make_team("vision", name="Vision")
    sign_in(page, portal, root)
    page.goto(f"{portal}/teams/vision/events")
    expect(page.locator(".live")).to_have_text("Live")
    ada = people.make_user("ada")
    members.add_member(people.actor_of(root), team, email=ada.email, role="member")
    expect(page.locator("#events")).to_contain_text("ada@example.org")
    assert Team.objects.count() == 1
