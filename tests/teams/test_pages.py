"""Keyset pages: no row twice, none skipped, cursors bound to their list and filters."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from portal.teams.models import Secret, Team
from portal.teams.services import members, secrets, tokens
from tests.people import api_client, make_team, make_user, make_world

pytestmark = pytest.mark.django_db
SECRETS = "/api/v1/teams/vision/secrets"


@pytest.fixture
def world(db):
    return make_world()


@pytest.fixture
def client(world):
    return api_client(world.people["admin"])


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def walk(client, path, between=lambda number: None, way="next"):
    """Every row from this page to the last, with something done between two pages."""
    rows, number = [], 0
    while path:
        page = client.get(path).json()
        rows.append(page["results"])
        between(number)
        number += 1
        path = page[way] and path_of(page[way])
    return rows


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
def test_all_rows_come_once_in_order_both_ways(client, world, limit):
    for number in range(6):
        make_team(f"t{number}")
    everything = sorted(Team.objects.values_list("pk", flat=True), reverse=True)
    pages = walk(client, f"/api/v1/teams?limit={limit}")
    assert [row["id"] for page in pages for row in page] == everything
    assert all(len(page) <= limit for page in pages)
    path = f"/api/v1/teams?limit={limit}"
    while (page := client.get(path).json())["next"]:
        path = path_of(page["next"])
    back = walk(client, path, way="previous")
    assert [row["id"] for page in reversed(back) for row in page] == everything


def test_links_lead_to_the_public_address_and_keep_limit_and_filters(client, settings):
    for number in range(3):
        make_team(f"t{number}")
    page = client.get("/api/v1/audit?limit=1&action=team.created").json()
    assert page["previous"] is None
    assert page["next"].startswith(f"{settings.PUBLIC_URL}/api/v1/audit?")
    query = dict(parse_qsl(urlsplit(page["next"]).query))
    assert (query["limit"], query["action"]) == ("1", "team.created")


steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 25)), min_size=0, max_size=12
)


@hypothesis_settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(first=st.sets(st.integers(0, 25), max_size=12), steps=steps, limit=st.integers(1, 4))
def test_rows_that_come_and_go_between_pages(client, world, first, steps, limit):
    """Over 300 ms: walks lists that change under the walk, in twenty ways."""
    Secret.objects.all().delete()
    manager = world.actor("manager")
    present, touched = set(), set()

    def add(letter):
        if letter not in present:
            secrets.create_secret(manager, world.team, name=letter, value="x")
            present.add(letter)

    def change(number):
        for verb, place in steps[number :: max(len(steps), 1)]:
            letter = chr(65 + place)
            touched.add(letter)
            if verb == "add":
                add(letter)
            elif letter in present:
                secrets.delete_secret(manager, world.team, name=letter)
                present.discard(letter)

    for place in first:
        add(chr(65 + place))
    steady = set(present)
    seen = [
        row["name"] for page in walk(client, f"{SECRETS}?limit={limit}", change) for row in page
    ]
    assert seen == sorted(set(seen))  # none twice, none out of order
    assert steady - touched <= set(seen)  # what stayed all the time was not skipped


BAD = [
    "limit=0",
    "limit=501",
    "limit=-1",
    "limit=x",
    "limit=1.0",
    "limit=",
    "limit=%D9%A1",
    "limit=" + "9" * 400,
    "cursor=",
    "cursor=x",
    "cursor=a:b:c",
    "cursor=%00",
    "cursor=%F0%9F%92%A9",
    "cursor=%ED%A0%80",
]


@pytest.mark.parametrize("query", BAD)
def test_a_bad_limit_or_cursor_is_400_with_its_pointer(client, query):
    answer = client.get(f"/api/v1/teams?{query}")
    assert answer.status_code == 400
    problem = answer.json()
    if problem["code"] != "nul_byte":
        assert problem["errors"][0]["pointer"] == f"/{query.split('=')[0]}"


def test_a_cursor_belongs_to_its_list_and_filters(client, world):
    viewer = world.actor("viewer")
    for number in range(3):
        tokens.create_token(viewer, name=f"n{number}", scopes=["read"])
    found = client.get("/api/v1/audit?limit=1&action=token.created").json()["next"]
    cursor = dict(parse_qsl(urlsplit(found).query))["cursor"]
    own = api_client(world.people["viewer"])
    for path in (
        f"/api/v1/audit?limit=1&cursor={cursor}",
        f"/api/v1/audit?limit=1&action=token.&cursor={cursor}",
        f"/api/v1/teams?cursor={cursor}",
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")
    assert own.get(f"/api/v1/audit?action=token.created&cursor={cursor}").status_code == 403
    assert (
        client.get(f"/api/v1/audit?limit=2&action=token.created&cursor={cursor}").status_code == 200
    )


def test_a_cursor_that_was_changed_is_refused(client):
    for number in range(3):
        make_team(f"t{number}")
    query = urlsplit(client.get("/api/v1/teams?limit=1").json()["next"]).query
    cursor = dict(parse_qsl(query))["cursor"]
    forged = cursor[:5] + ("A" if cursor[5] != "A" else "B") + cursor[6:]
    assert client.get("/api/v1/teams", {"limit": "1", "cursor": forged}).status_code == 400


# Queries ------------------------------------------------------------------------------------------

LISTS = {
    "/api/v1/teams": 3,
    "/api/v1/teams/vision/members": 4,
    "/api/v1/teams/vision/invitations": 4,
    "/api/v1/teams/vision/secrets": 4,
    "/api/v1/teams/vision/events": 4,
    "/api/v1/tokens": 3,
    "/api/v1/users": 3,
    "/api/v1/audit": 3,
}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("rows", [2, 20])
def test_a_list_takes_the_same_queries_whatever_its_length(
    client, world, rows, path, django_assert_num_queries
):
    admin = world.actor("admin")
    for number in range(rows):
        team = make_team(f"t{number}")
        secrets.create_secret(admin, world.team, name=f"S{number}", value="x")
        tokens.create_token(admin, name=f"n{number}", scopes=["read"], team=team)
        members.add_member(admin, world.team, email=f"new{number}@example.org", role="viewer")
        members.add_member(
            admin, world.team, email=make_user(f"known{number}").email, role="viewer"
        )
    client.get("/api/v1/me")  # so that the use of the token is noted
    with django_assert_num_queries(LISTS[path]):
        assert len(client.get(path).json()["results"]) >= rows
