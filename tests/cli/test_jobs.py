"""Jobs from a terminal, on the real application and the real local scheduler."""

import io
import json
import sys
import time
from datetime import timedelta
from threading import Event, Thread

import pytest
from django.db import connections

from clusters import services as clusters
from jobs import reconcile
from jobs.models import Job
from jobs.services import definitions
from portal.cli import app
from portal.core import clock
from tests.doubles.server import running
from tests.jobs.makers import make_job, post
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
def run(capfd, monkeypatch, tmp_path, world, settings):
    """Run the client as the team's member; gives its exit code, standard output and error."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    token = token_of(world.people["member"], scopes=["read", "write"])
    with running() as url:
        settings.LOOPBACK_URL = url

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
    assert run("jobs", "logs", job, "--stream", "stderr", "--follow")[1] == "oops\n"
    assert run("jobs", "logs", job, "--stream", "stdout", "--tail", "1", "-f")[1] == "hello you\n"
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


def test_preview_says_what_would_happen_and_launches_nothing(run) -> None:
    code, out, _err = run("jobs", "run", "hello", "-p", "code=0", "--preview")
    assert code == 0
    assert "starts: It can start now." in out
    assert "echo hello" in out
    large = ("jobs", "run", "hello", "-p", "code=0", "-r", "cpus_per_node=4000", "--preview")
    reconcile.sweep()  # which sees the machine
    code, out, err = run(*large, "--json")
    assert code == 0, err
    found = json.loads(out)["decision"]
    assert (found["verdict"], found["code"]) == ("refused", "never_fits")
    assert Job.objects.count() == 0
    assert run(*large[:-1])[0] == 1
    assert run(*large[:-1], "--force-queue")[0] == 0


def test_figures_are_shown_by_their_newest_mean_and_largest(run, world) -> None:
    job, token = make_job(world, started_at=clock.now() - timedelta(seconds=30))
    now = time.time()
    samples = [
        {"at": now - 20, "series": {"cpu_utilization_ratio": 0.25}},
        {"at": now - 2, "series": {"cpu_utilization_ratio": 0.75}},
    ]
    assert post(token, samples=samples).status == 200
    code, out, _err = run("jobs", "metrics", job.pk)
    assert code == 0
    line = next(line for line in out.splitlines() if "cpu_utilization_ratio" in line)
    assert line.split()[-3:] == ["0.75", "0.5", "0.75"]
    assert "series" in json.loads(run("jobs", "metrics", job.pk, "--json")[1])


def test_many_are_stopped_at_once_and_told_in_the_story(run) -> None:
    first, second = (
        json.loads(run("jobs", "run", "hello", "-p", "code=0", "--json")[1])["id"] for _ in "ab"
    )
    code, _out, err = run("jobs", "stop", first, second)
    assert code == 0
    assert "2 of 2 are asked to stop." in err
    assert "Asked to stop." in run("jobs", "events", first)[1]
    reconcile.sweep()
    code, _out, err = run("jobs", "resume", first)
    assert code == 1
    assert "No complete checkpoint" in err


def test_a_definition_travels_as_a_file(run, tmp_path) -> None:
    text = run("definitions", "export", "hello")[1]
    file = tmp_path / "hello.yaml"
    file.write_text(text.replace("slug: hello", "slug: greeting"))
    code, _out, err = run("definitions", "import", str(file))
    assert code == 1  # a member edits no definitions
    assert "manager" in err
    assert run("definitions", "export", "hello")[1] == text
    for wrong in ("{", "slug: x\nspec: {a: 2026-01-01}", "slug: x\nspec: {a: .nan}"):
        file.write_text(wrong)
        code, _out, err = run("definitions", "import", str(file))
        assert (code, "cannot be read" in err, "Traceback" in err) == (2, True, False)


def test_clusters_and_their_machines_are_listed(run) -> None:
    assert json.loads(run("clusters", "list", "--json")[1])[0]["slug"] == "local"
    nodes = json.loads(run("clusters", "nodes", "local", "--json")[1])
    assert nodes[0]["cpus"] >= 1


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
