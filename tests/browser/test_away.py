"""What people see while PostgreSQL is away."""

import httpx
from playwright.sync_api import Page, expect

AWAY = "postgresql://nobody@127.0.0.1:1/none"


def test_pages_and_rest_say_that_the_portal_is_away(page: Page, serve) -> None:
    portal = serve(DATABASE_URL=AWAY)
    page.context.add_cookies(
        [
            {"name": "slipway_session", "value": "x" * 32, "url": portal},
            {"name": "theme", "value": "dark", "url": portal},
        ]
    )
    answer = page.goto(f"{portal}/teams/vision")
    assert answer is not None
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    expect(page.get_by_role("heading", level=1)).to_have_text("Slipway is away for a moment")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    rest = httpx.get(f"{portal}/api/v1/me", headers={"Authorization": "Bearer slw_x"}, timeout=20)
    assert rest.status_code == 503
    assert rest.headers["content-type"] == "application/problem+json"
    assert rest.json()["code"] == "maintenance"
    assert httpx.get(f"{portal}/healthz").status_code == 200
