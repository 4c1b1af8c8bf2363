"""A real portal process on the test database, and a real Chromium that looks at it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from django.db import connection
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from portal.teams.models import User
from tests.browser.chromium import ARGUMENTS

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery staple"
START_SECONDS = 60
Serve = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = shutil.which("chromium") is None
    strict = os.environ.get("SLIPWAY_TEST_STRICT") == "1"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")
            item.add_marker(pytest.mark.django_db(transaction=True))
            if missing and not strict:
                item.add_marker(pytest.mark.skip(reason="Debian's chromium is not installed"))


def _test_database_url() -> str:
    """DATABASE_URL with the name of this worker's test database."""
    base = os.environ["DATABASE_URL"].rsplit("/", 1)[0]
    return f"{base}/{quote(connection.settings_dict['NAME'])}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def _portals(django_db_setup) -> Iterator[Serve]:
    """Start a portal for each set of settings that a test asks for, once."""
    running: dict[tuple[tuple[str, str], ...], tuple[subprocess.Popen[bytes], str]] = {}
    folder = Path(tempfile.mkdtemp(prefix="slipway-browser-"))

    def serve(**settings: str) -> str:
        key = tuple(sorted(settings.items()))
        if key not in running:
            running[key] = _start(folder, settings)
        return running[key][1]

    yield serve
    for process, _url in running.values():
        process.terminate()
    for process, _url in running.values():
        process.wait(timeout=20)
    shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, settings: dict[str, str]) -> "tuple[subprocess.Popen[bytes], str]":
    port = _free_port()
    url = f"http://localhost:{port}"
    output = folder / f"{port}.log"
    environ = {
        **os.environ,
        "DATABASE_URL": _test_database_url(),
        "SLIPWAY_PORT": str(port),
        "SLIPWAY_PUBLIC_URL": url,
        "SLIPWAY_HOME": str(folder / str(port)),
        **settings,
    }
    command = [sys.executable, "-m", "uvicorn", "portal.asgi:application", "--port", str(port)]
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--log-level", "warning"],
            env=environ,
            cwd=ROOT,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/healthz", timeout=5).status_code == 200:
                return process, url
        except httpx.TransportError:
            continue
    raise RuntimeError(f"the portal did not start:\n{output.read_text()}")


@pytest.fixture
def serve(_portals: Serve, transactional_db) -> Serve:
    """`serve(SLIPWAY_MFA="totp")` gives the address of a portal with those settings."""
    return _portals


@pytest.fixture
def portal(serve: Serve) -> str:
    """The address of a portal with default settings."""
    return serve()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the module: while it runs, Playwright's event loop runs in this thread."""
    path = shutil.which("chromium")
    assert path, "Debian's chromium is needed: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
            yield browser
        browser.close()


@pytest.fixture
def context(serve: Serve, chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(15000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails its test on any console error, broken script or CSP violation."""
    page = context.new_page()
    page.errors = []  # type: ignore[attr-defined] # collected for the assertion below
    watch(page)
    yield page
    assert page.errors == []  # type: ignore[attr-defined] # as above


def watch(page: Page) -> None:
    errors: list[str] = page.errors  # type: ignore[attr-defined] # set by the caller
    page.on("pageerror", lambda error: errors.append(str(error)))

    def heard(message) -> None:
        expected = "status of 4" in message.text or "status of 503" in message.text
        if message.type in ("error", "warning") and not expected:
            errors.append(message.text)

    page.on("console", heard)


@pytest.fixture
def sign_in() -> Callable[..., None]:
    """Sign a person in through the login page."""

    def run(page: Page, portal: str, user: User, *, password: str = PASSWORD) -> None:
        page.goto(f"{portal}/account/login/")
        page.get_by_label("E-mail").or_(page.get_by_label("Email")).fill(user.email)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url(f"{portal}/")

    return run


@pytest.fixture(autouse=True)
def _quick_passwords() -> None:
    """Passwords are hashed as the portal's process checks them."""
