"""Pages around jobs: the list, launch and preview, versions, clusters, the dashboard."""

import json
import re
import shlex
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from clusters import services as clusters
from clusters.schedulers.contract import NodeSeen
from clusters.selectors import facts_of
from jobs.models import Job, JobDefinition
from jobs.selectors import newest_of
from jobs.services import definitions, jobs
from jobs.services.jobs import Wanted
from portal.core import clock
from tests.people import World, browser, make_world

pytestmark = pytest.mark.django_db
SPEC = {
    "regime": "smoke",
    "time_limit_seconds": 7200,
    "script": "echo {{ text }}",
    "parameters": {
        "text": {"type": "string", "default": "world"},
        "steps": {"type": "integer", "minimum": 1, "default": 10},
        "on": {"type": "boolean", "default": True},
        "seeds": {"type": "array", "items": {"type": "integer"}, "default": [1, 2]},
    },
    "tags": {"cost": "emea"},
}


@pytest.fixture
def world() -> World:
    world = make_world()
    clusters.ensure_local().teams.add(world.team)
    return world


@pytest.fixture
def train(world) -> JobDefinition:
    return definitions.create_definition(
        world.actor("manager"), world.team, slug="train", name="Train", spec=SPEC
    )


def submit(world: World, train: JobDefinition, *, who: str = "member", **values: Any) -> Job:
    wanted = Wanted(
        version=newest_of(train), team=world.team, cluster=facts_of(clusters.ensure_local())
    )
    job = jobs.submit(world.actor(who), wanted)
    if values:
        Job.objects.filter(pk=job.pk).update(**values)
    return job


def form(world: World, **changes: str) -> dict[str, str]:
    values = {
        "team": world.team.slug,
        "cluster": "local",
        "parameters.text": "it's",
        "parameters.steps": "10",
        "parameters.seeds": "3\n4",
        "resources.nodes": "1",
        "resources.gpus_per_node": "0",
        "resources.gpu_type": "",
        "resources.cpus_per_node": "1",
        "resources.memory_bytes_per_node": "0.5",
        "time_limit_seconds": "1 h 30 min",
        "tags": "paper=neurips\n",
    }
    return {**values, **changes}


def text(response: Any) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def listed(client: Any, query: str = "") -> list[str]:
    return re.findall(r'<tr id="job-(\w+)"', client.get(f"/jobs{query}").content.decode())


def test_the_list_pages_by_key_and_skips_and_doubles_none(world, train) -> None:
    ids = [submit(world, train).pk for _ in range(105)][::-1]
    client = browser(world.people["member"])
    assert listed(client) == ids[:50]
    assert listed(client, f"?before={ids[49]}") == ids[50:100]
    assert listed(client, f"?before={ids[99]}") == ids[100:]
    assert listed(client, f"?after={ids[100]}") == ids[50:100]
    assert listed(client, f"?after={ids[50]}") == ids[:50]
    older = re.search(
        r'href="(\?[^"]*before=[^"]*)"', client.get("/jobs?phase=QUEUED").content.decode()
    )
    assert older is not None
    assert "phase=QUEUED" in older[1]
    assert "No older jobs" in text(client.get(f"/jobs?before={ids[-1]}"))


def test_filters_are_in_the_address_and_can_be_cleared(world, train) -> None:
    mine = submit(world, train, name="tuned", tags={"paper": "icml"})
    other = submit(world, train, who="manager", phase="RUNNING", started_at=clock.now())
    client = browser(world.people["member"])
    for query, found in (
        ("?q=TUNE", [mine.pk]),
        (f"?q={other.pk.lower()}", [other.pk]),
        ("?owner=me", [mine.pk]),
        ("?phase=RUNNING,STOPPING", [other.pk]),
        ("?tag=paper=icml", [mine.pk]),
        ("?definition=train&cluster=local&team=vision", [other.pk, mine.pk]),
        ("?definition=nothing", []),
    ):
        assert listed(client, query) == found, query
    assert "Clear the filters" in text(client.get("/jobs?q=nothing"))
    assert "Choose of QUEUED" in text(client.get("/jobs?phase=asleep"))
    assert "No jobs yet" in text(browser(world.people["other"]).get("/jobs"))


def test_only_what_a_person_may_stop_can_be_ticked(world, train) -> None:
    mine, other = submit(world, train), submit(world, train, who="manager")
    ended = submit(world, train, phase="SUCCEEDED")
    boxes = r'name="job" value="(\w+)"'
    seen = {
        who: set(re.findall(boxes, browser(world.people[who]).get("/jobs").content.decode()))
        for who in ("member", "manager", "viewer")
    }
    assert seen == {"member": {mine.pk}, "manager": {mine.pk, other.pk}, "viewer": set()}
    client = browser(world.people["member"])
    sent = {"job": [mine.pk, other.pk, ended.pk], "query": "q=x"}
    answer = client.post("/jobs/stop", sent)
    assert answer["Location"] == "/jobs?q=x"
    assert "1 job is asked to stop" in text(client.get("/jobs"))
    assert Job.objects.exclude(stop_reason="").get().pk == mine.pk


def test_rows_are_asked_for_by_id_with_how_many_are_newer(world, train) -> None:
    first, second = submit(world, train), submit(world, train)
    page = browser(world.people["member"]).get(f"/jobs/rows?job={first.pk}&newest={first.pk}")
    assert re.findall(r'<tr id="job-(\w+)"', page.content.decode()) == [first.pk]
    assert '<p id="newer">1</p>' in page.content.decode()
    hidden = browser(world.people["other"]).get(f"/jobs/rows?job={second.pk}&newest={first.pk}")
    assert "<tr" not in hidden.content.decode()
    assert '<p id="newer">0</p>' in hidden.content.decode()


def test_a_preview_says_what_would_happen_and_gives_commands(world, train) -> None:
    client = browser(world.people["member"])
    page = client.post(f"/definitions/{train.pk}/launch", form(world, preview="1"))
    assert page.status_code == 200
    assert not Job.objects.exists()
    html = page.content.decode()
    words = text(page)
    assert "It would start" in words
    assert "1 h 30 min (5400 s)" in words
    assert "SLIPWAY_PARAM_TEXT" in words
    curl = re.search(r'id="preview-curl"[^>]*>(.*?)</pre>', html, re.DOTALL)
    cli = re.search(r'id="preview-cli"[^>]*>(.*?)</pre>', html, re.DOTALL)
    assert curl is not None
    assert cli is not None
    sent = json.loads(shlex.split(unescape(curl[1]))[-1])
    assert sent == {
        "definition": "train",
        "version": 1,
        "team": "vision",
        "cluster": "local",
        "parameters": {"text": "it's", "on": False, "seeds": [3, 4]},
        "resources": {"memory_bytes_per_node": 1 << 29},
        "time_limit_seconds": 5400,
        "tags": {"paper": "neurips"},
    }
    assert "--time-limit 5400" in unescape(cli[1])


def test_a_preview_says_when_the_cluster_is_full(world, train) -> None:
    node = NodeSeen(name="n", state="ready", cpus=2, memory_bytes=1 << 34, cpus_allocated=2)
    clusters.note_nodes(clusters.ensure_local(), [node])
    client = browser(world.people["member"])
    page = client.post(f"/definitions/{train.pk}/launch", form(world, preview="1"))
    assert "It would wait The cluster is in use: 2 of 2 CPUs." in text(page)
    clusters.note_nodes(clusters.ensure_local(), [replace(node, cpus_allocated=1)])
    page = client.post(f"/definitions/{train.pk}/launch", form(world, preview="1"))
    assert "It would start" in text(page)
    page = client.post(
        f"/definitions/{train.pk}/launch",
        form(world, preview="1", **{"resources.cpus_per_node": "3"}),
    )
    assert "It would be refused" in text(page)
    assert "the largest has 2" in text(page)


def test_what_a_preview_shows_is_what_is_submitted(world, train) -> None:
    client = browser(world.people["member"])
    sent = form(world, key="K1")
    assert client.post(f"/definitions/{train.pk}/launch", sent).status_code == 302
    job = Job.objects.get()
    assert job.parameters == {"text": "it's", "steps": 10, "on": False, "seeds": [3, 4]}
    assert job.resources["memory_bytes_per_node"] == 1 << 29
    assert (job.time_limit_seconds, job.tags["paper"]) == (5400, "neurips")
    again = client.post(f"/definitions/{train.pk}/launch", sent)
    assert again["Location"] == f"/jobs/{job.pk}"
    assert Job.objects.count() == 1
    assert client.post(f"/definitions/{train.pk}/launch", form(world, key="K2")).status_code == 302
    assert Job.objects.count() == 2


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("time_limit_seconds", "soon", "Write it as 2 h 30 min"),
        ("time_limit_seconds", "3 h", "Give 1 s to 2 h"),
        ("tags", "neurips", "Write each as name=value"),
        ("parameters.seeds", "1\nx", "Give a number on each line"),
        ("parameters.steps", "0", "less than the minimum of 1"),
        ("parameters.steps", "", "This field is required"),
        ("resources.cpus_per_node", "5000", "greater than the maximum"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_starts(world, train, field, value, words) -> None:
    client = browser(world.people["member"])
    page = client.post(f"/definitions/{train.pk}/launch", form(world, **{field: value}))
    assert page.status_code == 422
    assert words in text(page)
    assert "Nothing was started." in text(page)
    shown = client.post(
        f"/definitions/{train.pk}/launch", form(world, preview="1", **{field: value})
    )
    assert "1 thing to mend" in text(shown)
    assert not Job.objects.exists()


def test_a_form_is_filled_from_a_job(world, train) -> None:
    client = browser(world.people["member"])
    client.post(f"/definitions/{train.pk}/launch", form(world, name="tuned"))
    job = Job.objects.get()
    plain = client.get(f"/definitions/{train.pk}/launch").content.decode()
    assert f"from={job.pk}" in plain
    filled = client.get(f"/definitions/{train.pk}/launch?from={job.pk}").content.decode()
    for value in ('value="it&#x27;s"', 'value="1 h 30 min"', 'value="tuned"', 'value="0.5"'):
        assert value in filled, value
    assert "paper=neurips" in filled
    assert "cost=emea" not in filled
    assert re.search(r"<textarea[^>]*seeds[^>]*>\s*3\n4</textarea>", filled)
    tick = re.search(r'<input type="checkbox" name="parameters.on"[^>]*>', filled)
    assert tick is not None
    assert "checked" not in tick[0]
    other = browser(world.people["other"]).get(f"/definitions/{train.pk}/launch?from={job.pk}")
    assert other.status_code == 404
    Job.objects.update(phase="FAILED")
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert f"/definitions/{train.pk}/launch?version=1&amp;from={job.pk}" in page


def test_a_viewer_looks_and_does_not_launch(world, train) -> None:
    page = browser(world.people["viewer"]).get(f"/definitions/{train.pk}/launch")
    assert "You may look, but not launch" in text(page)
    assert "You may look, but not launch" in text(browser(world.people["viewer"]).get("/launch"))


def test_a_long_text_keeps_its_lines(world) -> None:
    told = {"text": {"type": "string", "maxLength": 9000, "default": "a\nb"}}
    spec = {**SPEC, "parameters": told}
    row = definitions.create_definition(
        world.actor("manager"), world.team, slug="lines", name="Lines", spec=spec
    )
    client, address = browser(world.people["member"]), f"/definitions/{row.pk}/launch"
    assert ">\na\nb</textarea>" in client.get(address).content.decode()
    sent = {"parameters.text": "cd /tmp\r\nls"}
    assert client.post(address, form(world, **sent)).status_code == 302
    assert Job.objects.get().parameters == {"text": "cd /tmp\nls"}


def test_what_was_launched_last_comes_first(world, train) -> None:
    manager = world.actor("manager")
    definitions.create_definition(manager, world.team, slug="other", name="Other", spec=SPEC)
    submit(world, train)
    names = re.findall(
        r"<bdi>(Train|Other)</bdi></a>",
        browser(world.people["member"]).get("/launch").content.decode(),
    )
    assert names == ["Train", "Other"]


def test_versions_are_compared_and_each_is_launched(world, train) -> None:
    definitions.save_version(world.actor("manager"), train, spec={**SPEC, "time_limit_seconds": 60})
    page = browser(world.people["member"]).get(f"/definitions/{train.pk}")
    html = page.content.decode()
    assert re.search(r'<tr class="del">.*?time_limit_seconds: 7200</td>', html)
    assert re.search(r'<tr class="add">.*?time_limit_seconds: 60</td>', html)
    assert f"/definitions/{train.pk}/launch?version=1" in html
    assert "version 2 → 1" in text(
        browser(world.people["member"]).get(f"/definitions/{train.pk}?version=1&against=2")
    )


def test_the_dashboard_shows_what_waits_and_why(world, train, django_assert_num_queries) -> None:
    submit(
        world,
        train,
        name="held",
        reason="waiting_for_quota",
        message="4 GPUs are free.",
        advice="Ask for fewer.",
    )
    submit(world, train, name="going", phase="RUNNING", started_at=clock.now())
    submit(world, train, who="manager", name="elsewhere", phase="RUNNING", started_at=clock.now())
    page = text(browser(world.people["member"]).get("/"))
    assert "4 GPUs are free. Ask for fewer." in page
    assert "going" in page
    assert "elsewhere" not in page.split("What happened")[0]


def test_a_clusters_page_shows_only_the_jobs_that_a_person_may_see(world, train) -> None:
    clusters.ensure_local().teams.add(world.other)
    submit(world, train, name="secret-name", phase="RUNNING", started_at=clock.now())
    assert "secret-name" in text(browser(world.people["member"]).get("/clusters/local"))
    assert "secret-name" not in text(browser(world.people["other"]).get("/clusters/local"))
