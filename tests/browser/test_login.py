"""Every way to sign in, in a real browser: password, TOTP, passkey, company account."""

import re

import pytest
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from playwright.sync_api import expect

from portal.teams.models import User
from portal.teams.roles import SiteRole
from portal.teams.services import users
from tests import people
from tests.browser.conftest import PASSWORD
from tests.doubles import identity_provider as idp


@pytest.fixture
def ada(transactional_db) -> User:
    return people.make_user("ada", password=PASSWORD)


def test_password_signs_in_and_the_session_id_is_new(page, portal, ada, sign_in) -> None:
    page.goto(f"{portal}/account/login/")
    before = {c["name"]: c["value"] for c in page.context.cookies()}
    sign_in(page, portal, ada)
    after = {c["name"]: c["value"] for c in page.context.cookies()}
    assert after["slipway_session"] != before.get("slipway_session")
    assert after["slipway_csrf"] != before["slipway_csrf"]
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_wrong_password_says_so_and_keeps_the_address(page, portal, ada) -> None:
    page.goto(f"{portal}/account/login/")
    page.locator("#id_login").fill(ada.email)
    page.locator("#id_password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    expect(page.locator("#id_login")).to_have_value(ada.email)


def test_a_cookie_stolen_before_sign_out_is_worth_nothing_after(
    page, portal, ada, sign_in, chromium
) -> None:
    sign_in(page, portal, ada)
    stolen = page.context.cookies()
    page.goto(f"{portal}/account/logout/")
    page.get_by_role("main").get_by_role("button", name="Sign out").click()
    page.wait_for_url(re.compile("/account/login/"))
    thief = chromium.new_context()
    thief.add_cookies(stolen)
    there = thief.new_page()
    there.goto(f"{portal}/me")
    assert "/account/login/" in there.url
    thief.close()


def test_totp_is_asked_for_after_the_password(page, serve, ada, sign_in) -> None:
    portal = serve(SLIPWAY_MFA="totp")
    sign_in(page, portal, ada)
    page.goto(f"{portal}/account/2fa/totp/activate/")
    if "reauthenticate" in page.url:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("main").get_by_role("button", name="Confirm").click()
    secret = page.locator("#authenticator_secret").input_value()
    page.get_by_label(re.compile("code", re.I)).fill(_totp(secret))
    page.get_by_role("button", name="Activate").click()
    page.wait_for_url(re.compile("/account/2fa/"))
    page.context.clear_cookies()
    page.goto(f"{portal}/account/login/")
    page.locator("#id_login").fill(ada.email)
    page.locator("#id_password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(re.compile("/account/2fa/authenticate/"))
    page.goto(f"{portal}/me")
    assert "/account/" in page.url, "the password alone must not be enough"


def _totp(secret: str) -> str:
    counter = next(iter(yield_hotp_counters_from_time()))
    return str(format_hotp_value(hotp_value(secret, counter)))


def test_a_passkey_signs_in_without_a_password(page, serve, ada, sign_in) -> None:
    portal = serve(SLIPWAY_MFA="passkeys")
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    sign_in(page, portal, ada)
    page.goto(f"{portal}/account/2fa/webauthn/add/")
    if "reauthenticate" in page.url:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("main").get_by_role("button", name="Confirm").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_label(re.compile("passwordless", re.I)).check()
    page.locator("#mfa_webauthn_add").click()
    page.wait_for_url(re.compile(r"/account/2fa/(?!webauthn/add)"))
    page.context.clear_cookies()
    page.goto(f"{portal}/account/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{portal}/")
    page.goto(f"{portal}/me")
    expect(page.get_by_role("main")).to_contain_text(ada.email)


@pytest.fixture
def provider():
    with idp.identity_provider() as provider:
        yield provider


def _serve_with(serve, provider) -> str:
    return serve(
        SLIPWAY_OIDC_ISSUER_URL=provider.issuer,
        SLIPWAY_OIDC_CLIENT_ID=idp.CLIENT_ID,
        SLIPWAY_OIDC_CLIENT_SECRET=idp.CLIENT_SECRET,
    )


def test_the_company_account_signs_a_new_person_in(page, serve, provider) -> None:
    portal = _serve_with(serve, provider)
    page.goto(f"{portal}/account/login/")
    page.get_by_role("button", name="Sign in with company account").click()
    page.wait_for_url(f"{portal}/")
    user = User.objects.get(email=provider.email)
    assert (user.is_active, user.site_role, user.has_usable_password()) == (True, "", False)


def test_the_company_account_joins_the_account_of_the_same_address(page, serve, provider) -> None:
    known = people.make_user("grace", password=PASSWORD)
    portal = _serve_with(serve, provider)
    page.goto(f"{portal}/account/login/")
    page.get_by_role("button", name="Sign in with company account").click()
    page.wait_for_url(f"{portal}/")
    assert User.objects.get(email=provider.email).pk == known.pk


def test_an_address_that_the_company_has_not_verified_is_refused(page, serve, provider) -> None:
    known = people.make_user("grace", password=PASSWORD)
    provider.is_verified = False
    portal = _serve_with(serve, provider)
    page.goto(f"{portal}/account/login/")
    page.get_by_role("button", name="Sign in with company account").click()
    page.wait_for_load_state()
    page.goto(f"{portal}/me")
    assert "/account/login/" in page.url
    assert User.objects.filter(email=provider.email).get().pk == known.pk


def test_a_deactivated_person_is_signed_out_at_once(page, portal, ada, sign_in) -> None:
    sign_in(page, portal, ada)
    admin = people.make_user("root", site_role=SiteRole.ADMIN)
    users.deactivate(people.actor_of(admin), user_id=ada.pk)
    page.goto(f"{portal}/me")
    assert "/account/login/" in page.url


def test_a_form_replayed_with_an_old_csrf_token_changes_nothing(page, portal, ada, sign_in) -> None:
    sign_in(page, portal, ada)
    page.goto(f"{portal}/me")
    answer = page.request.post(
        f"{portal}/me",
        form={"form": "profile", "name": "Mallory", "csrfmiddlewaretoken": "x" * 64},
        headers={"Referer": f"{portal}/me"},
    )
    assert answer.status == 403
    assert "open too long" in answer.text()
    ada.refresh_from_db()
    assert ada.name == "ada"
