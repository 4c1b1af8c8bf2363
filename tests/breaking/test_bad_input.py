"""Requests that no honest browser sends: each gets a sentence, never a traceback or a full disk."""

import asyncio
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from django.conf import settings

from portal.asgi import application
from portal.core.bodies import bounded
from tests.people import api_client, browser, make_team, make_user

pytestmark = pytest.mark.django_db
NUL_COOKIE = '"\\000' + "a" * 31 + '"'  # what cookies call a NUL byte


@pytest.mark.parametrize("path", ["/", "/api/v1/me"])
def test_a_session_cookie_that_no_database_can_hold_is_nobodys(path: str) -> None:
    client = browser(None)
    client.cookies.load(f"{settings.SESSION_COOKIE_NAME}={NUL_COOKIE}")
    assert client.get(path).status_code in (302, 401)


@pytest.mark.django_db(transaction=True)
def test_a_socket_with_such_a_cookie_is_closed_as_not_signed_in() -> None:
    async def close_code() -> int:
        cookie = f"{settings.SESSION_COOKIE_NAME}={NUL_COOKIE}".encode()
        headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"cookie", cookie)]
        socket = WebsocketCommunicator(application, "/ws/v1/feed", headers=headers)
        await socket.connect()
        return (await socket.receive_output())["code"]

    assert asyncio.run(close_code()) == 4401


@pytest.mark.parametrize("charset", ["zlib", "utf-7", "hex", "undefined", "no-such"])
def test_a_form_in_another_charset_is_refused(charset: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="form"\r\n\r\nprofile\r\n--b--\r\n'
    kind = f"multipart/form-data; boundary=b; charset={charset}"
    answer = browser(make_user()).generic("POST", "/me", body, content_type=kind)
    assert answer.status_code == 400
    assert "UTF-8" in answer.content.decode()


def test_a_count_of_thousands_of_digits_is_a_wrong_field() -> None:
    team = make_team(max="manager")
    client = browser(team.memberships.get().user)
    answer = client.post(f"/teams/{team.slug}/quotas", {"gpus_by_type": "h100: " + "9" * 5000})
    assert answer.status_code == 422


def test_an_idempotency_key_on_an_endless_path_is_kept_like_any_other() -> None:
    client = api_client(make_user())
    path = f"/api/v1/teams/{'a' * 700}/secrets"
    for _ in range(2):
        answer = client.post(path, {"name": "A", "value": "v"}, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 404


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/?q=%00", {}), ("/", {"CONTENT_LENGTH": str(1 << 30)}), ("/static/favicon.svg", {})],
)
def test_what_is_refused_at_the_door_carries_the_headers_of_safety(
    path: str, headers: dict[str, Any]
) -> None:
    answer = browser(None).get(path, **headers)
    assert answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["\x1b[2Jred", "a\x07b", "\u200b", "\u2066\u2069"])
def test_a_name_that_would_command_a_terminal_or_show_nothing_is_refused(name: str) -> None:
    team = make_team(max="manager")
    client = api_client(team.memberships.get().user)
    assert client.patch(f"/api/v1/teams/{team.slug}", {"name": name}).status_code == 400
    assert client.patch("/api/v1/me", {"name": name}).status_code == 400


@pytest.mark.parametrize("name", ["Zoë 👩‍🔬", "فريق", "日本"])
def test_a_name_of_any_language_is_taken(name: str) -> None:
    client = api_client(make_user())
    assert client.patch("/api/v1/me", {"name": name}).json()["name"] == name


class TestBodies:
    """A body above the limit is read no further, whether it says its length or not."""

    @pytest.mark.parametrize("says_length", [True, False])
    def test_no_more_than_the_limit_is_read(self, says_length: bool) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        if says_length:
            headers.append((b"content-length", str(limit * 100).encode()))
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/v1/teams",
            "headers": headers,
            "http_version": "1.1",
            "query_string": b"",
            "raw_path": b"/api/v1/teams",
        }

        async def ask() -> dict[str, Any]:
            asked = ApplicationCommunicator(application, scope)
            for _ in range(100):
                await asked.send_input(
                    {"type": "http.request", "body": b"x" * limit, "more_body": True}
                )
            start: dict[str, Any] = await asked.receive_output(10)
            assert asked.input_queue.qsize() > 90
            return start

        assert asyncio.run(ask())["status"] == 413

    def test_a_body_within_the_limit_arrives_whole(self) -> None:
        seen: list[bytes] = []

        async def application_below(_scope: Any, receive: Any, _send: Any) -> None:
            while True:
                message = await receive()
                seen.append(message["body"])
                if not message["more_body"]:
                    return

        async def ask() -> None:
            scope = {"type": "http", "headers": []}
            asked = ApplicationCommunicator(bounded(application_below, most_bytes=4), scope)
            for body, more in ((b"ab", True), (b"cd", False)):
                await asked.send_input({"type": "http.request", "body": body, "more_body": more})
            await asked.wait()

        asyncio.run(ask())
        assert b"".join(seen) == b"abcd"
