"""The pages of signing in lead nowhere that leads nowhere."""

import pytest

from tests import people


@pytest.mark.django_db
def test_a_reset_by_mail_is_offered_only_where_there_is_mail(client, settings) -> None:
    settings.HAS_MAIL = False
    assert b"/account/password/reset/" not in client.get("/account/login/").content
    client.force_login(people.make_user("ada", password="correct horse battery staple"))
    assert b"/account/password/reset/" not in client.get("/account/password/change/").content
    settings.HAS_MAIL = True
    assert b"/account/password/reset/" in client.get("/account/password/change/").content
    client.logout()
    assert client.get("/account/login/").content.count(b"/account/password/reset/") == 1


@pytest.mark.django_db
def test_a_changed_password_leads_back_to_the_account(client) -> None:
    old, new = "correct horse battery staple", "wrong horse battery staple"
    client.force_login(people.make_user("ada", password=old))
    form = {"oldpassword": old, "password1": new, "password2": new}
    assert client.post("/account/password/change/", form).headers["Location"] == "/me"
