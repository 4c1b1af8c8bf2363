"""Routes: who may make them, and which addresses they may name."""

import pytest
from django.db import connection

from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound, Refused
from portal.notices import selectors, services
from portal.notices.models import SIGNING_SECRETS, TARGETS, Route
from portal.teams.models import AuditEvent

PUBLIC = "https://93.184.216.34/hook/s3cret-path"


def create(actor, team, **columns):
    wanted = {"kind": "webhook", "name": "pager", "target": PUBLIC, **columns}
    return services.create_route(actor, team=team, **wanted)


def test_managers_and_admins_make_routes_of_a_team(who):
    assert create(who.manager, who.team).row.team == who.team
    assert create(who.admin, who.team, name="by admin").row.created_by_id == who.admin.user_id
    for actor in (who.viewer, who.member, who.auditor):
        with pytest.raises(NotAllowed):
            create(actor, who.team, name="no")
    with pytest.raises(NotFound):
        create(who.stranger, who.team, name="no")


def test_admins_alone_make_routes_of_the_site(who):
    assert create(who.admin, None).row.team is None
    for actor in (who.manager, who.auditor, who.stranger):
        with pytest.raises(NotAllowed):
            create(actor, None, name="no")


def test_who_sees_and_changes_a_route(who):
    route = create(who.manager, who.team).row
    site = create(who.admin, None).row
    assert selectors.route_for(who.viewer, route.pk) == route
    assert set(selectors.routes_for(who.auditor)) == {route, site}
    for call in (services.delete_route, services.test_route, services.update_route):
        with pytest.raises(NotAllowed):
            call(who.viewer, route)
        with pytest.raises(NotFound):
            call(who.stranger, route)
    for actor in (who.stranger, who.viewer):
        with pytest.raises(NotFound):
            selectors.route_for(actor, site.pk)


def test_the_target_is_stored_encrypted_and_shown_masked(who):
    created = create(who.manager, who.team)
    assert created.row.target_label == "93.184.216.34/…path"
    assert created.signing_secret.reveal().startswith("whsec_")
    row = Route.objects.get()
    assert TARGETS.open(row).reveal() == PUBLIC
    assert SIGNING_SECRETS.open(row) == created.signing_secret
    with connection.cursor() as cursor:
        cursor.execute("SELECT notices_route::text FROM notices_route")
        assert "s3cret" not in cursor.fetchone()[0]
    assert "s3cret" not in str(AuditEvent.objects.get(action="route.created").facts)


def test_only_webhooks_are_signed(who):
    mail = create(who.manager, who.team, kind="mail", target="ops@example.org")
    assert mail.signing_secret is None
    assert mail.row.target_label == "ops@example.org"


@pytest.mark.parametrize(
    ("kind", "target", "sentence"),
    [
        ("webhook", "http://169.254.169.254/latest/meta-data/", "metadata service"),
        ("slack", "http://[::ffff:169.254.169.254]/", "metadata service"),
        ("webhook", "http://10.0.0.8/hook", "private or loopback"),
        ("webhook", "http://127.0.0.1:8000/hook", "private or loopback"),
        ("webhook", "ftp://example.org/", "Only http and https"),
        ("webhook", "https://user:pass@example.org/", "user name or password"),
        ("mail", "not an address", "not an e-mail address"),
        ("mail", "a@example.org\nBcc: b@example.org", "not an e-mail address"),
    ],
)
def test_addresses_that_may_not_be_called_are_refused_at_once(who, kind, target, sentence):
    good = "ok@example.org" if kind == "mail" else PUBLIC
    existing = create(who.manager, who.team, name="good", kind=kind, target=good).row
    with pytest.raises(Refused, match=sentence) as refused:
        create(who.manager, who.team, kind=kind, target=target)
    assert refused.value.code == "address_refused"
    assert [e.pointer for e in refused.value.errors] == ["/target"]
    with pytest.raises(Refused, match=sentence):
        services.update_route(who.manager, existing, target=target)
    assert Route.objects.count() == 1


def test_a_name_that_does_not_resolve_now_is_taken(who):
    assert create(who.manager, who.team, target="https://hooks.invalid/x").row.is_enabled


def test_names_are_unique_in_their_scope(who):
    create(who.manager, who.team)
    other = create(who.manager, who.team, name="other").row
    create(who.admin, None)
    create(who.stranger, who.other)
    with pytest.raises(Conflict, match="named pager"):
        create(who.manager, who.team)
    with pytest.raises(Conflict, match="named pager"):
        services.update_route(who.manager, other, name="pager")
    with pytest.raises(Conflict, match="named pager"):
        create(who.admin, None)


@pytest.mark.parametrize(
    "columns",
    [
        {"quiet_from": "22:00"},
        {"quiet_from": "22:00", "quiet_until": "22:00"},
        {"name": "  "},
        {"name": "a\x00b"},
        {"name": "x" * 101},
    ],
)
def test_what_makes_no_sense_is_invalid(who, columns):
    with pytest.raises(Invalid):
        create(who.manager, who.team, **columns)


def test_a_route_is_changed_and_deleted(who):
    route = create(who.manager, who.team).row
    changed = services.update_route(
        who.manager, route, name="night", target="https://93.184.216.34/new", min_level="bad",
        quiet_from="22:00", quiet_until="07:00",
    )  # fmt: skip
    assert (changed.name, changed.min_level, changed.target_label) == (
        "night", "bad", "93.184.216.34/…/new",
    )  # fmt: skip
    assert TARGETS.open(Route.objects.get()).reveal() == "https://93.184.216.34/new"
    with pytest.raises(Invalid):
        services.update_route(who.manager, changed, quiet_until=None)
    subject = f"route:{route.pk}"
    services.delete_route(who.manager, changed)
    assert not Route.objects.exists()
    actions = AuditEvent.objects.filter(subject=subject).order_by("at")
    assert [e.action for e in actions] == ["route.created", "route.changed", "route.deleted"]
