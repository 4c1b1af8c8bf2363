"""Takes docs/screenshot.png from a real portal: `python -m tests.screenshot`."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.bench import portal
from tests.browser.chromium import ARGUMENTS

TARGET = portal.ROOT / "docs" / "screenshot.png"
PEOPLE = (
    ("ada@example.org", "member"),
    ("grace@example.org", "manager"),
    ("alan@example.org", "viewer"),
)


def main() -> None:
    """Start, arrange a small team as a person would, and take the picture."""
    folder = Path(tempfile.mkdtemp(prefix="slipway-screenshot-"))
    chromium = shutil.which("chromium")
    assert chromium, "Debian's chromium is needed"
    try:
        checkout = portal.clone(folder)
        environment = portal.clean_environment(folder, caches=True)
        with portal.up(checkout, environment) as running, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1280, "height": 760})
            page.goto(f"{running.url}/account/login/")
            page.locator("#id_login").fill(portal.EMAIL)
            page.locator("#id_password").fill(portal.PASSWORD)
            page.get_by_role("button", name="Sign in", exact=True).click()
            page.get_by_role("link", name="Create a team").click()
            page.get_by_label("Name", exact=True).fill("Multimodal Foundation")
            page.get_by_label("Name in addresses").fill("multimodal")
            page.get_by_label("Time zone").select_option("Europe/Berlin")
            page.get_by_role("button", name="Create the team").click()
            for email, role in PEOPLE:
                page.get_by_label("E-mail").fill(email)
                page.locator("#id_role").select_option(role)
                page.get_by_role("button", name="Add", exact=True).click()
            page.goto(f"{running.url}/teams/multimodal")
            page.locator(".live").get_by_text("Live").wait_for()
            page.screenshot(path=TARGET)
            browser.close()
    finally:
        portal.remove(folder)


if __name__ == "__main__":
    main()
