"""Every page as people meet it: accessible, within its width, in both themes, full and empty."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from clusters.selectors import facts_of
from clusters.services import ensure_local
from jobs.models import Job
from jobs.selectors import newest_of
from jobs.services import attempts, definitions, jobs
from jobs.services.jobs import Wanted
from portal.core import clock
from portal.notices import services as notices
from portal.notices.values import LevelName
from portal.teams.models import Team
from portal.teams.services import limits, members, secrets, tokens
from tests import people
from tests.browser.conftest import PASSWORD, watch
from tests.jobs.makers import ERR, OUT, chunk, post

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
UGLY = "Maximiliane von Hohenstein-Schwarzenberg " + "zu" * 60
OPEN = ("/account/login/", "/account/password/reset/", "/account/signup/", "/invite/none", "/lost")
SIGNED_IN = (
    "/",
    "/me",
    "/notices",
    "/jobs",
    "/jobs?q=nothing+has+this+name",
    "/launch",
    "/jobs/{job}",
    "/jobs/{job}/story",
    "/jobs/{job}/metrics",
    "/jobs/{job}/script",
    "/jobs/{ended}",
    "/jobs/{ended}/story",
    "/clusters",
    "/clusters/local",
    "/definitions",
    "/definitions/new",
    "/definitions/{definition}",
    "/definitions/{definition}?version=1&against=2",
    "/definitions/{definition}/launch",
    "/definitions/{definition}/launch?from={job}",
    "/api/docs",
    "/account/password/change/",
    "/account/2fa/",
    "/admin/teams",
    "/admin/teams/new",
    "/admin/users",
    "/admin/audit",
    "/admin/notices",
    "/teams/vision",
    "/teams/vision/quotas",
    "/teams/vision/secrets",
    "/teams/vision/secrets/HF_TOKEN",
    "/teams/vision/tokens",
    "/teams/vision/events",
    "/teams/vision/notices",
    "/teams/vision/settings",
    "/teams/empty",
    "/teams/empty/secrets",
    "/teams/empty/tokens",
    "/teams/empty/events",
)
WIDTHS = (320, 390, 768, 1440, 2560)


LOG = (
    b"\x1b[1;34mINFO\x1b[0m <script>alert(1)</script> \x1b[38;5;226myellow\x1b[0m\n"
    b"\x1b[7minverse\x1b[0m \x1b[2mdim\x1b[0m \x1b[41mred ground\x1b[0m \x1b[90mgrey\x1b[0m\n"
    b"10%\r20%\r30%\n" + b"w" * 3000 + b"\n" + "تم تحميل ١٢٣ عينة\n".encode()
)
SERIES = {f'gpu_utilization_ratio{{gpu="{n}"}}': n / 16 for n in range(16)} | {
    "cpu_utilization_ratio": 0.5,
    "nic_receive_bytes_per_second": 1e6,
    "nic_transmit_bytes_per_second": 2e6,
}
ERRORS = b"ValueError: \x1b[31mno\x1b[0m \xff\x00\n"


def _make_jobs(team: Team, admin) -> None:
    """A job with an ugly log, and one that failed."""
    ensure_local().teams.add(team)
    actor = people.actor_of(admin)
    spec = {
        "regime": "smoke",
        "time_limit_seconds": 3600,
        "script": "echo {{ text }}\n" + "x" * 500,
        "parameters": {"text": {"type": "string", "default": UGLY}},
        "env": {"A" + "B" * 60: "c"},
        "tags": {"cost_center": "EMEA-4410-" + "X" * 100},
    }
    row = definitions.create_definition(actor, team, slug="ugly", name=UGLY, spec=spec)
    row = definitions.save_version(actor, row, spec={**spec, "time_limit_seconds": 7200})
    wanted = Wanted(version=newest_of(row), team=team, cluster=facts_of(ensure_local()), name=UGLY)
    job, ended = jobs.submit(actor, wanted), jobs.submit(actor, wanted)
    token = attempts.digest_of(attempts.token_of(job))
    now = clock.now()
    sample = {"at": now.timestamp(), "series": SERIES}
    post(token, chunk(OUT, 0, LOG), chunk(ERR, 0, ERRORS), samples=[sample])
    Job.objects.filter(pk=job.pk).update(
        phase="RUNNING", started_at=now, node_names=["n" * 100], attempt=2, external_id="8231907"
    )
    Job.objects.filter(pk=ended.pk).update(
        phase="FAILED", reason="exit_code", exit_code=139, started_at=now, ended_at=now
    )


def paths() -> list[str]:
    """The addresses of all pages for who is signed in."""
    job, ended = Job.objects.order_by("pk")
    names = {"job": job.pk, "ended": ended.pk, "definition": job.version.definition_id}
    return [path.format(**names) for path in SIGNED_IN]


@pytest.fixture
def full(transactional_db):
    """A site with ugly data: long names, right-to-left names, mark-up as a name."""
    admin = people.make_user("root", site_role="admin", password=PASSWORD)
    actor = people.actor_of(admin)
    team = people.make_team("vision", name="Multimodal Foundation & Robotics Research (EMEA) 🤖")
    people.make_team("empty", name="فريق تجربة تدريب النموذج رقم ١٢")
    for name in ("ada", "li", "bob"):
        people.join(team, people.make_user(name), role="member")
    people.User.objects.filter(email="ada@example.org").update(name=UGLY)
    people.User.objects.filter(email="bob@example.org").update(name="<script>alert(1)</script>")
    members.add_member(actor, team, email="new@example.org", role="viewer")
    for name in ("HF_TOKEN", "A" + "x" * 99):
        secrets.create_secret(actor, team, name=name, value="value")
    _make_jobs(team, admin)
    limits.set_limits(
        actor, team, wanted={"gpus": 256, "gpus_by_type": {"h100": 64, "b200": 0}, "nodes": 0}
    )
    tokens.create_token(actor, name="x" * 100, scopes=["read"], team=team)
    notices.create_route(actor, team=team, kind="mail", name="On call", target="a@example.org")
    facts = {"message": "The cluster has not answered for 12 minutes; nothing was stopped."}
    notices.set_level("cluster:x", LevelName.BAD, facts, team=team)
    return admin


def _serious(page: Page) -> list[str]:
    """What axe-core calls serious or critical."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{v['id']}: {v['help']}: {json.dumps([n['target'] for n in v['nodes']][:3])}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_accessibility_fault(
    scheme, chromium: Browser, portal, full, sign_in
) -> None:
    """Buys WCAG 2.2 AA on every page; one sign-in for all of them."""
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.errors = []  # type: ignore[attr-defined] # read by watch
    watch(page)
    faults = {}
    for path in OPEN:
        page.goto(portal + path)
        faults[path] = _serious(page)
    sign_in(page, portal, full)
    for path in paths():
        page.goto(portal + path)
        faults[path] = _serious(page)
    context.close()
    assert {path: found for path, found in faults.items() if found} == {}
    assert page.errors == []  # type: ignore[attr-defined] # no script broke, no CSP violation


def test_no_page_scrolls_sideways_at_any_width(page: Page, portal, full, sign_in) -> None:
    """Buys phones to wall screens; one sign-in for all of them."""
    sign_in(page, portal, full)
    too_wide = []
    for path in (*paths(), "/lost"):
        page.goto(portal + path)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                too_wide.append(f"{path} at {width}")
    assert too_wide == []


def test_no_page_has_an_inline_script_or_style(page: Page, portal, full, sign_in) -> None:
    sign_in(page, portal, full)
    for path in paths():
        answer = page.request.get(portal + path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        html = answer.text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*(src=|json))", html), path


def test_every_page_has_one_heading_a_skip_link_and_landmarks(
    page: Page, portal, full, sign_in
) -> None:
    sign_in(page, portal, full)
    for path in paths():
        page.goto(portal + path)
        assert page.locator("h1").count() == 1, path
        assert page.locator("main").count() == 1, path
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip", path


def test_error_pages_say_what_to_do(page: Page, portal, full, sign_in) -> None:
    sign_in(page, portal, full)
    for path, status, words in (
        ("/lost", 404, "There is nothing here"),
        ("/teams/nobodys", 404, "not yours to see"),
        ("/teams/vision?x=%00", 400, "NUL byte"),
    ):
        answer = page.goto(portal + path)
        assert answer is not None
        assert answer.status == status
        assert words in page.get_by_role("main").inner_text()
        assert page.get_by_role("link", name="Go to the dashboard").is_visible()
    assert Team.objects.count() == 2
