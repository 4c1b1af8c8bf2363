"""The client against the real application on a loopback port, and against what is none."""

import io
import json
import os
import pty
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from portal.cli import app, client, config
from portal.cli import teams as team_commands
from portal.teams import selectors
from portal.teams.models import SECRET_VALUES, ApiToken, Secret
from portal.teams.models import Team as TeamRow
from portal.teams.services import members, secrets, tokens
from tests.doubles.server import running
from tests.people import api_client, make_user, make_world, token_of

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def world(transactional_db):
    return make_world()


@pytest.fixture
def url(transactional_db):
    with running() as address:
        yield address


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SLIPWAY_URL", "SLIPWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run(capfd, monkeypatch):
    """Run the client in this process; gives its exit code, standard output and error."""

    def run(*words: str, stdin: str | bytes = ""):
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            app.main(list(words))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return SimpleNamespace(code=ended.value.code or 0, out=out, err=err)

    return run


@pytest.fixture
def signed_in(url, world, monkeypatch):
    """Sign a persona in by the environment."""

    def signed_in(persona: str, **narrowed) -> None:
        monkeypatch.setenv("SLIPWAY_URL", url)
        monkeypatch.setenv("SLIPWAY_TOKEN", token_of(world.people[persona], **narrowed))

    return signed_in


# Signing in and out -------------------------------------------------------------------------------


def test_signing_in_keeps_a_file_that_only_its_owner_reads(run, url, world, home):
    text = token_of(world.people["viewer"], scopes=["read"])
    done = run("login", "--url", f"{url}/", "--token", "-", stdin=f"{text}\n")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"Signed in at {url} as viewer@example.org.\n"
    assert stat.S_IMODE(config.path().stat().st_mode) == 0o600
    assert stat.S_IMODE(config.path().parent.stat().st_mode) == 0o700
    assert [file.name for file in config.path().parent.iterdir()] == ["config.toml"]
    shown = run("whoami")
    assert "viewer@example.org" in shown.out
    assert text not in shown.out + shown.err
    as_json = json.loads(run("whoami", "--json").out)
    assert (as_json["url"], as_json["teams"]) == (url, {"vision": "viewer"})
    assert run("logout").err == "Signed out here.\n"
    assert run("whoami").code == 3
    assert run("logout").code == 0


def test_a_bad_token_is_not_kept(run, url, home):
    done = run("login", "--url", url, "--token", "-", stdin="slw_nobody\n")
    assert done.code == 3
    assert "slipway login" in done.err
    assert not config.path().exists()


def test_a_stored_token_goes_to_no_other_address(run, url, world, monkeypatch):
    text = token_of(world.people["viewer"], scopes=["read"])
    run("login", "--url", url, "--token", "-", stdin=text)
    done = run("whoami", "--url", "http://127.0.0.1:9")
    assert (done.code, done.err) == (
        3,
        "slipway: Not signed in at http://127.0.0.1:9. Run `slipway login`.\n",
    )


@pytest.mark.parametrize("text", ["", "url = 1", "url = 'x'", "\0", "[", 'url = "x"\ntoken'])
def test_a_damaged_file_says_what_to_do(run, home, text):
    config.path().parent.mkdir()
    config.path().write_text(text)
    done = run("whoami")
    assert done.code == 3
    assert "delete it and run `slipway login`" in done.err


def test_an_unwritable_folder_says_what_to_do(run, url, world, home):
    config.path().parent.write_text("a file where the folder should be")
    text = token_of(world.people["viewer"], scopes=["read"])
    done = run("login", "--url", url, "--token", "-", stdin=text)
    assert done.code == 1
    assert "XDG_CONFIG_HOME" in done.err


def test_a_portals_environment_never_stops_the_client(run, signed_in, monkeypatch):
    signed_in("viewer")
    monkeypatch.setenv("SLIPWAY_FUTURE", "1")
    monkeypatch.setenv("SLIPWAY_PORT", "eighty")
    monkeypatch.setenv("SLIPWAY_HOME", "/proc/1/nothing")
    assert run("whoami").code == 0
    monkeypatch.setenv("SLIPWAY_URL", "portal")
    done = run("whoami")
    assert done.code == 2
    assert done.err.startswith("slipway: SLIPWAY_URL must be an address")


# Teams, people, secrets, tokens -------------------------------------------------------------------


def test_teams(run, signed_in):
    signed_in("admin")
    assert run("teams", "create", "robots", "--name", "Robots").code == 0
    listed = run("teams", "list")
    assert "robots\tRobots\tadmin\tUTC" in listed.out.splitlines()
    rows = json.loads(run("--json", "teams", "list").out)
    assert {row["slug"] for row in rows} == {"vision", "speech", "robots"}
    shown = json.loads(run("teams", "show", "robots", "--json").out)
    assert (shown["name"], shown["quotas"]["gpus"]) == ("Robots", None)
    assert "Robots" in run("teams", "show", "robots").out
    again = run("teams", "create", "robots")
    assert (again.code, again.out) == (1, "")
    assert "taken" in again.err
    wrong = run("teams", "create", "Robots")
    assert wrong.code == 1
    assert wrong.err.count("\n") == 1


def test_people_of_the_only_team(run, signed_in, world):
    signed_in("manager")
    make_user("ada")
    assert run("members", "add", "ada@example.org", "--role", "viewer").code == 0
    invited = run("members", "add", "new@example.org")
    assert invited.out.startswith("http")
    assert "/invite/" in invited.out
    assert "ada@example.org\tada\tviewer\tyes" in run("members", "list").out
    assert run("members", "role", "ada@example.org", "member").code == 0
    assert run("members", "role", "ada@example.org", "king").code == 1
    assert "ada@example.org\tada\tmember\tyes" in run("members", "list").out
    assert run("members", "remove", "ADA@example.org").code == 0
    missing = run("members", "remove", "ada@example.org")
    assert missing.code == 1
    assert "no member" in missing.err
    assert not world.team.memberships.filter(user__email="ada@example.org").exists()


def test_secrets_come_from_standard_input_and_never_go_back(run, signed_in, world):
    signed_in("manager")
    assert run("secrets", "set", "KEY", stdin="one\ntwo\n").err == "KEY is stored.\n"
    assert run("secrets", "set", "KEY", stdin="three").err == "KEY is replaced.\n"
    listed = run("secrets", "list", "--json").out
    assert [row["name"] for row in json.loads(listed)] == ["KEY"]
    assert "three" not in listed
    assert run("secrets", "set", "KEY", stdin=b"\xff").code == 2
    assert run("secrets", "set", "KEY", "value-on-the-command-line").code == 2
    assert run("secrets", "delete", "KEY").code == 0
    assert not Secret.objects.exists()
    assert run("secrets", "delete", "../../me").code == 1


def test_a_secrets_value_is_kept_as_given(run, signed_in, world):
    signed_in("manager")
    run("secrets", "set", "KEY", stdin=" one\n\ttwo é\n\n")
    row = Secret.objects.get()
    assert SECRET_VALUES.open(row).reveal() == " one\n\ttwo é\n"


def test_tokens(run, signed_in, url):
    signed_in("member", scopes=["write"])
    made = run("tokens", "create", "ci", "--scope", "read", "--expires-days", "30")
    text = made.out.strip()
    assert "once" in made.err
    row = ApiToken.objects.get(digest=tokens.digest_of(text))
    assert (row.name, row.scopes, row.expires_at is None) == ("ci", ["read"], False)
    assert row.pk in run("tokens", "list").out
    assert run("whoami", "--token", text).code == 0
    refused = run("tokens", "create", "x", "--token", text)
    assert refused.code == 1
    assert run("tokens", "revoke", row.pk).code == 0
    assert run("whoami", "--token", text).code == 3
    assert run("tokens", "create", "x", "--scope", "root").code == 1


def test_which_team_is_asked_for_with_their_names(run, signed_in, world):
    members.add_member(world.actor("admin"), world.other, email="member@example.org", role="viewer")
    signed_in("member")
    done = run("secrets", "list")
    assert done.code == 2
    assert "--team SLUG: speech, vision" in done.err
    assert run("secrets", "list", "--team", "speech").code == 0
    assert run("secrets", "list", "--team", "nobody").code == 1
    signed_in("auditor")
    assert run("events").code == 2


def test_events_and_lists_longer_than_a_page(run, signed_in, world, monkeypatch):
    monkeypatch.setattr(client, "PAGE", 3)
    for number in range(7):
        secrets.create_secret(world.actor("manager"), world.team, name=f"S{number}", value="x")
    signed_in("viewer")
    rows = json.loads(run("secrets", "list", "--json").out)
    assert [row["name"] for row in rows] == [f"S{number}" for number in range(7)]
    events = json.loads(run("events", "--limit", "5", "--json").out)
    assert [event["facts"]["name"] for event in events] == ["S6", "S5", "S4", "S3", "S2"]
    assert len(run("events", "--limit", "2").out.splitlines()) == 2


# Terminals and pipes ------------------------------------------------------------------------------


def environ(url, token, home):
    return {**os.environ, "SLIPWAY_URL": url, "SLIPWAY_TOKEN": token, "XDG_CONFIG_HOME": str(home)}


def test_following_events_until_they_come(url, world, home):
    """Over 300 ms: a process that follows the events of a team."""
    token = token_of(world.people["viewer"], scopes=["read"])
    program = (
        "from portal.cli import app, teams; teams.FOLLOW_SECONDS = 0.05;"
        "app.main(['events', '--follow', '--json', '--limit', '1'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environ(url, token, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        assert json.loads(follower.stdout.readline())["action"] == "member.added"
        for name in ("A", "B"):
            secrets.create_secret(world.actor("manager"), world.team, name=name, value="x")
        found = [json.loads(follower.stdout.readline())["facts"]["name"] for _ in range(2)]
        assert found == ["A", "B"]
        follower.send_signal(2)
        assert follower.wait(10) in (130, 1)
        assert b"Traceback" not in follower.stderr.read()


def test_a_broken_pipe_is_quiet(url, world, home):
    """Over 300 ms: a shell with a pipe whose reader is gone."""
    token = token_of(world.people["viewer"], scopes=["read"])
    for number in range(40):
        secrets.create_secret(
            world.actor("manager"), world.team, name=f"S{number}" + "x" * 90, value="x"
        )
    line = f"{sys.executable} -u -m portal.cli secrets list --json | head -c 1"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=ROOT,
        env=environ(url, token, home),
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"[", b"")


def on_a_terminal(words, env, *, columns=80, answers=()):
    """What a command prints on a terminal of that width; each answer waits for its question."""
    waiting = list(answers)
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    with subprocess.Popen(
        [sys.executable, "-m", "portal.cli", *words],
        cwd=ROOT,
        env={**env, "COLUMNS": str(columns), "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as process:
        os.close(slave)
        found = b""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            ended = process.poll() is not None
            try:
                found += os.read(master, 65536)
            except (BlockingIOError, OSError):
                if ended:
                    break
            if waiting and waiting[0][0].encode() in found:
                os.write(master, f"{waiting.pop(0)[1]}\n".encode())
        process.kill()
    os.close(master)
    return found.decode()


@pytest.mark.parametrize("columns", [40, 200])
def test_a_table_fits_the_terminal_and_no_name_steers_it(url, world, home, columns):
    """Over 300 ms: a real terminal."""
    TeamRow.objects.filter(pk=world.team.pk).update(name="\x1b[31mred\x1b[0m [bold]" + "long " * 20)
    token = token_of(world.people["viewer"], scopes=["read"])
    shown = on_a_terminal(["teams", "list"], environ(url, token, home), columns=columns)
    assert "\x1b[31m" not in shown
    assert "[bold]" in shown.replace("\r\n", "")
    assert "vision" in shown
    plain = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in shown.splitlines()]
    assert max(len(line) for line in plain) <= columns


def test_signing_in_asks_for_the_address_and_unseen_for_the_token(url, world, home):
    """Over 300 ms: a real terminal."""
    token = token_of(world.people["viewer"], scopes=["read"])
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}
    # The space comes once the terminal no longer echoes; what is typed earlier is dropped.
    answers = [("Address of the portal", url), ("Token: ", token)]
    shown = on_a_terminal(["login"], {**env, "XDG_CONFIG_HOME": str(home)}, answers=answers)
    assert "as viewer@example.org." in shown
    assert token not in shown
    assert config.read() == config.Account(url=url, token=token)


def test_it_starts_fast_and_without_what_it_does_not_need(home):
    """Over 300 ms: starts Python."""
    program = (
        "import sys, portal.cli.app as a\n"
        "print([m for m in ('django', 'httpx', 'rich', 'tenacity') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["teams"], ["teams", "--help"], ["events", "--help"]]
)
def test_help_names_what_there_is(run, words):
    done = run(*words)
    assert "Usage: slipway" in done.out + done.err


@pytest.mark.parametrize(
    "words",
    [["nothing"], ["teams", "lst"], ["--url"], ["events", "--limit", "0"], ["whoami", "x"]],
)
def test_a_wrong_command_line_is_2(run, words):
    assert run(*words).code == 2


# What is no portal --------------------------------------------------------------------------------


@contextmanager
def answering(*answers):
    """A server that gives the answers one after the other: status, headers, body."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_GET  # noqa: N815 - names of the standard library

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", left
        server.shutdown()


def problem(status, **extra):
    body = {"detail": "Come back later.", "code": "x", "request_id": "r-1", **extra}
    kind = {"Content-Type": "application/problem+json"}
    return status, kind, json.dumps(body).encode()


ME = {"email": "a@b.c", "name": "", "site_role": "", "teams": {}, "token": None}
FINE = (200, {"Content-Type": "application/json"}, json.dumps(ME).encode())


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_portal_is_asked_again_when_it_said(run, status):
    busy, kind, body = problem(status)
    with answering((busy, {**kind, "Retry-After": "0"}, body), FINE) as (url, _):
        assert run("whoami", "--url", url, "--token", "x").code == 0


def test_a_portal_that_stays_busy_is_given_up_and_writing_is_tried_once(run):
    busy, kind, body = problem(503)
    first = (busy, {**kind, "Retry-After": "0"}, body)
    with answering(*[first] * 9) as (url, left):
        done = run("whoami", "--url", url, "--token", "x")
        assert (done.code, done.err) == (4, "slipway: Come back later.\n")
        assert len(left) == 9 - client.TRIES
        run("tokens", "revoke", "x", "--url", url, "--token", "x")
        assert len(left) == 9 - client.TRIES - 1


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((200, {"Content-Type": "text/html"}, b"<html>"), 4, "is no Slipway portal"),
        ((302, {"Location": "https://x.example/"}, b""), 4, "It points to https://x.example/"),
        ((500, {"Content-Type": "text/plain"}, b"x"), 4, "is no Slipway portal"),
        ((200, {"Content-Type": "application/json"}, b"{"), 4, "is no Slipway portal"),
        (problem(500), 1, "Its id is r-1"),
        (problem(403), 1, "Come back later."),
        (problem(401), 3, "slipway login"),
        (problem(400, errors=[{"pointer": "/name", "message": "Too long."}]), 1, "name: Too long."),
        ((400, {"Content-Type": "application/problem+json"}, b"[]"), 4, "is no Slipway portal"),
    ],
)
def test_each_bad_answer_is_one_sentence(run, answer, code, words):
    with answering(answer) as (url, _):
        done = run("whoami", "--url", url, "--token", "x")
    assert done.code == code
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:9", 4),
        ("http://nothing.invalid", 4),
        ("ftp://x", 2),
        ("portal", 2),
        ("http://[::1", 2),
        ("http://\0", 2),
        ("http://127.0.0.1:99999", 2),
    ],
)
def test_an_address_where_nothing_is(run, url, code):
    done = run("whoami", "--url", url, "--token", "x")
    assert done.code == code
    assert done.err.startswith("slipway: ")


@pytest.mark.parametrize("token", ["ü", "a\nb", "a\0b"])
def test_a_token_that_is_none(run, url, token):
    assert run("whoami", "--url", url, "--token", token).code in (2, 3)


def test_the_fixtures_tell_the_truth(world):
    assert api_client(world.people["viewer"]).get("/api/v1/me").status_code == 200
    assert selectors.teams_for(world.actor("viewer")).count() == 1
    assert team_commands.FOLLOW_SECONDS >= 1
