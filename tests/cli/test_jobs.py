"""Jobs from a terminal, on the real application and the real local scheduler."""

import io
import json
import sys
from threading import Event, Thread

import pytest
from django.db import connections

from clusters import services as clusters
from jobs import reconcile
from jobs.models import Job
from jobs.services import definitions
from portal.cli import app
from tests.doubles.server import running
from tests.people import make_world, token_of

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPT = "echo hello {{ who }}; echo oops >&2; exit {{ code }}"


@pytest.fixture
def world(transactional_db, settings, tmp_path):
    settings.LOCAL_JOBS_FOLDER, settings.HAS_WALL = tmp_path / "jobs", False
    world = make_world()
    clusters.ensure_local().teams.add(world.team)
    parameters = {"who": {"type": "string", "default": "you"}, "code": {"type": "integer"}}
    spec = {"regime": "smoke", "time_limit_seconds": 60, "script": SCRIPT, "parameters": parameters}
    manager = world.actor("manager")
    definitions.create_definition(manager, world.team, slug="hello", name="Hello", spec=spec)
    return world


@pytest.fixture
def sweeping():
    """A worker that sweeps until the test ends."""
    over = Event()

    def work() -> None:
        try:
            while not over.wait(0.1):
                reconcile.sweep()
        finally:
            connections.close_all()

    worker = Thread(target=work)
    worker.start()
    yield
    over.set()
    worker.join()


@pytest.fixture
def run(capfd, monkeypatch, tmp_path, world):
    """Run the client as the team's member; gives its exit code, standard output and error."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    token = token_of(world.people["member"], scopes=["read", "write"])
    with running() as url:

        def run(*words: str):
            monkeypatch.setattr(sys, "stdin", io.StringIO(""))
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                app.main([*words, "--url", url, "--token", token])
            out, err = capfd.readouterr()
            return ended.value.code or 0, out, err

        yield run


def test_follow_prints_the_output_and_ends_with_the_exit_code(run, sweeping) -> None:
    words = ("jobs", "run", "hello", "-p", "who=$(id) 'x'", "-p", "code=7", "--follow")
    code, out, err = run(*words)
    assert (code, out) == (7, "hello $(id) 'x'\n")
    assert "oops" in err
    assert "failed (exit_code)" in err


def test_json_stays_json_while_output_goes_aside(run, sweeping) -> None:
    code, out, err = run("jobs", "run", "hello", "-p", "code=0", "-f", "--json")
    assert (code, json.loads(out)["phase"]) == (0, "SUCCEEDED")
    assert "hello you" in err
    job = json.loads(out)["id"]
    assert run("jobs", "logs", job)[1] == "hello you\n"
    assert run("jobs", "logs", job, "--stream", "stderr")[1] == "oops\n"
    assert job in run("jobs", "list")[1].replace("\n", "")
    assert json.loads(run("jobs", "show", job, "--json")[1])["exit_code"] == 0


def test_stop_retry_and_definitions(run) -> None:
    made = json.loads(run("jobs", "run", "hello", "-p", "code=0", "--json")[1])
    assert run("jobs", "stop", made["id"])[0] == 0
    assert Job.objects.get().stop_reason == "user"
    reconcile.sweep()
    assert run("jobs", "retry", made["id"])[0] == 0
    assert Job.objects.count() == 2
    assert "hello" in run("definitions", "list")[1]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("jobs", "run", "hello", "-p", "code"), 2, "NAME=VALUE"),
        (("jobs", "run", "hello", "-p", "code=x"), 1, "parameters/code"),
        (("jobs", "run", "nobodys"), 1, "no definition"),
        (("jobs", "show", "01JNOBODYS"), 1, "no such job"),
    ],
)
def test_mistakes_are_one_sentence(run, words, code, sentence) -> None:
    ended, out, err = run(*words)
    assert (ended, out) == (code, "")
    assert sentence in err
    assert "Traceback" not in err
