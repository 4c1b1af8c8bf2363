"""Jobs over REST."""

import pytest

from clusters import services as clusters
from jobs.models import Job, JobDefinition
from jobs.services import definitions
from portal.teams.services import limits
from tests.people import World, api_client, browser, make_world

pytestmark = pytest.mark.django_db
PATH = "/api/v1/jobs"
SPEC = {
    "regime": "smoke",
    "time_limit_seconds": 60,
    "script": "echo {{ x }}",
    "parameters": {"x": {"type": "integer", "minimum": 1}},
}


@pytest.fixture
def world() -> World:
    world = make_world()
    clusters.ensure_local().teams.add(world.team)
    definitions.create_definition(
        world.actor("manager"), world.team, slug="train", name="Train", spec=SPEC
    )
    return world


def body(world: World, **changes) -> dict:
    wanted = {"team": world.team.slug, "cluster": "local", "definition": "train"}
    return {**wanted, "parameters": {"x": 1}, **changes}


def test_a_job_is_submitted_listed_and_stopped(world) -> None:
    member = api_client(world.people["member"])
    made = member.post(PATH, body(world, name="mine", tags={"paper": "neurips"}))
    assert made.status_code == 201, made.json()
    job = made.json()
    assert (job["phase"], job["owner"], job["definition"]["version"]) == (
        "QUEUED",
        "member@example.org",
        1,
    )
    for query, count in (
        ("", 1),
        ("?phase=queued,running", 1),
        ("?phase=RUNNING", 0),
        ("?tag=paper=neurips", 1),
        ("?tag=paper", 1),
        ("?tag=paper=icml", 0),
        ("?q=MIN", 1),
        ("?owner=member@example.org&cluster=local&definition=train", 1),
        ("?team=speech", 0),
    ):
        assert len(member.get(PATH + query).json()["results"]) == count, query
    assert member.get(f"{PATH}?phase=asleep").status_code == 400
    stopped = member.post(f"{PATH}/{job['id']}/stop")
    assert stopped.status_code == 200
    kinds = [e["kind"] for e in member.get(f"{PATH}/{job['id']}/events").json()["results"]]
    assert kinds == ["phase", "wish"]


def test_the_same_key_submits_once(world) -> None:
    member = api_client(world.people["member"])
    answers = [member.post(PATH, body(world), HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "status", "pointer"),
    [
        ({"parameters": {"x": 0}}, 400, "/parameters/x"),
        ({"parameters": {}}, 400, "/parameters/x"),
        ({"parameters": {"x": 1, "y": 2}}, 400, "/parameters/y"),
        ({"time_limit_seconds": 61}, 400, "/time_limit_seconds"),
        ({"resources": {"gpus": 1}}, 400, "/resources/gpus"),
        ({"definition": "nobodys"}, 404, None),
        ({"cluster": "nobodys"}, 404, None),
        ({"version": 9}, 404, None),
        ({"parameters": {"x": 10**400}}, 201, None),
    ],
)
def test_bad_input_names_the_field_and_starts_nothing(world, changes, status, pointer) -> None:
    answer = api_client(world.people["member"]).post(PATH, body(world, **changes))
    assert answer.status_code == status, answer.json()
    if pointer:
        assert [e["pointer"] for e in answer.json()["errors"]] == [pointer]
    assert Job.objects.exists() is (status == 201)


@pytest.mark.parametrize("count", [2, 20])
def test_the_list_asks_a_constant_number_of_queries(
    world, count, django_assert_num_queries
) -> None:
    member = api_client(world.people["member"])
    for _ in range(count):
        assert member.post(PATH, body(world)).status_code == 201
    with django_assert_num_queries(3):
        assert len(member.get(PATH).json()["results"]) == count


def test_the_launch_page_is_made_of_the_definition_and_loses_nothing(world) -> None:
    member = browser(world.people["member"])
    row = JobDefinition.objects.get(slug="train")
    path = f"/definitions/{row.pk}/launch"
    assert 'name="parameters.x"' in member.get(path).content.decode()
    form = {
        "team": world.team.slug,
        "cluster": "local",
        "parameters.x": "0",
        "resources.nodes": "1",
        "resources.gpus_per_node": "0",
        "resources.cpus_per_node": "1",
        "time_limit_seconds": "60",
    }
    refused = member.post(path, form)
    assert refused.status_code == 422
    assert "less than the minimum of 1" in refused.content.decode()
    done = member.post(path, {**form, "parameters.x": "5"})
    assert done.status_code == 302
    job = Job.objects.get()
    assert (job.parameters, done.headers["Location"]) == ({"x": 5}, f"/jobs/{job.pk}")
    page = member.get(f"/jobs/{job.pk}").content.decode()
    assert "Queued" in page
    assert member.get("/jobs").status_code == 200
    assert member.post(f"/jobs/{job.pk}/stop").status_code == 302
    assert Job.objects.get().stop_reason == "user"


def test_a_preview_says_it_all_and_changes_nothing(world) -> None:
    client = api_client(world.people["member"], scopes=["write"])
    found = client.post("/api/v1/jobs/preview", body(world))
    assert found.status_code == 200
    shown = found.json()
    assert shown["decision"]["verdict"] == "starts"
    assert shown["script"].startswith("#!/bin/sh")
    assert shown["cost"] is None
    assert "user" in shown["permissions"][0]
    limits.set_limits(world.actor("admin"), world.team, wanted={"running_jobs": 0})
    waits = client.post("/api/v1/jobs/preview", body(world)).json()["decision"]
    assert (waits["verdict"], waits["code"]) == ("waits", "waiting_for_quota")
    limits.set_limits(world.actor("admin"), world.team, wanted={"nodes": 1})
    large = body(world, resources={"nodes": 3})
    refused = client.post("/api/v1/jobs/preview", large).json()["decision"]
    assert (refused["verdict"], refused["code"]) == ("refused", "exceeds_quota")
    assert client.post("/api/v1/jobs", large).status_code == 422
    assert client.get("/api/v1/jobs").json()["results"] == []


def test_name_tags_and_priority_change_while_that_makes_sense(world) -> None:
    client = api_client(world.people["member"], scopes=["write"])
    job = client.post("/api/v1/jobs", body(world)).json()["id"]
    path = f"/api/v1/jobs/{job}"
    changed = client.patch(path, {"name": "новое\n имя", "tags": {"a": "b"}, "priority": 7}).json()
    assert (changed["name"], changed["tags"], changed["priority"]) == (
        "новое имя",
        {"a": "b"},
        7,
    )
    Job.objects.filter(pk=job).update(phase="RUNNING")
    late = client.patch(path, {"priority": 9})
    assert (late.status_code, late.json()["errors"][0]["pointer"]) == (409, "/priority")
    assert client.patch(path, {"name": "still"}).json()["name"] == "still"
    many = client.patch(path, {"tags": {f"t{n}": "x" for n in range(51)}})
    assert (many.status_code, many.json()["errors"][0]["pointer"]) == (400, "/tags")
    viewer = api_client(world.people["viewer"], scopes=["write"])
    assert viewer.patch(path, {"name": "x"}).status_code == 403


def test_what_is_not_there_yet_is_said(world) -> None:
    client = api_client(world.people["member"], scopes=["write"])
    for more in ({"depends_on": ["x"]}, {"array": 5}):
        answer = client.post("/api/v1/jobs", body(world, **more))
        assert (answer.status_code, answer.json()["code"]) == (422, "unsupported")
    made = client.post("/api/v1/jobs", body(world)).json()["id"]
    report = client.get(f"/api/v1/jobs/{made}/report").json()
    assert (report["gpu_hours"], report["checkpoints"], report["cost"]) == (0.0, [], None)
    resumed = client.post(f"/api/v1/jobs/{made}/resume")
    assert (resumed.status_code, resumed.json()["code"]) == (409, "not_ended")


def test_many_are_stopped_and_those_of_others_are_passed_over(world) -> None:
    member = api_client(world.people["member"], scopes=["write"])
    manager = api_client(world.people["manager"], scopes=["write"])
    own = [member.post("/api/v1/jobs", body(world)).json()["id"] for _ in range(2)]
    foreign = manager.post("/api/v1/jobs", body(world)).json()["id"]
    ids = {"ids": [*own, foreign, "01NOBODYS"]}
    assert member.post("/api/v1/jobs/stop", ids).json() == {"stopped": 2}
    assert Job.objects.get(pk=foreign).stop_reason == ""


def test_a_definition_with_jobs_that_live_is_not_deleted(world) -> None:
    manager = api_client(world.people["manager"], scopes=["write"])
    job = manager.post("/api/v1/jobs", body(world)).json()["id"]
    path = f"/api/v1/job-definitions/{JobDefinition.objects.get(slug='train').pk}"
    refused = manager.delete(path)
    assert (refused.status_code, refused.json()["facts"]["jobs"]) == (409, [job])
    Job.objects.filter(pk=job).update(phase="CANCELLED")
    assert manager.delete(path).status_code == 204
    assert manager.post(f"/api/v1/jobs/{job}/retry").status_code == 201


def test_a_type_of_gpu_is_one_however_it_is_written(world) -> None:
    limits.set_limits(world.actor("admin"), world.team, wanted={"gpus_by_type": {"H100": 1}})
    member = api_client(world.people["member"])
    wanted = {"gpus_per_node": 2, "gpu_type": "H100"}
    refused = member.post(PATH, body(world, resources=wanted, force_queue=True))
    assert (refused.status_code, refused.json()["code"]) == (422, "exceeds_quota")


@pytest.mark.parametrize("text", ["0" * 20 + "9" * 12, "0" * 5000, "1" * 30, "-1", "x"])
def test_a_number_of_a_query_stays_within_its_bounds(world, text) -> None:
    member = api_client(world.people["member"])
    job = member.post(PATH, body(world)).json()["id"]
    answer = member.get(f"{PATH}/{job}/logs?rank={text}")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/rank")


def test_without_a_wall_nobody_launches_on_this_machine_unless_assigned(world, settings) -> None:
    settings.HAS_WALL = False
    clusters.ensure_local().teams.clear()
    type(clusters.ensure_local()).objects.update(is_shared=True)  # as it was when there was a wall
    client = api_client(world.people["member"], scopes=["write"])
    refused = client.post("/api/v1/jobs", body(world))
    assert (refused.status_code, refused.json()["code"]) == (422, "cluster_not_assigned")
    settings.HAS_WALL = True
    assert client.post("/api/v1/jobs", body(world)).status_code == 201


def test_a_mistyped_field_is_said(world) -> None:
    client = api_client(world.people["member"], scopes=["write"])
    wrong = client.post("/api/v1/jobs", body(world, time_limit=5))
    assert wrong.status_code == 400
    assert wrong.json()["errors"][0]["pointer"] == "/time_limit"
    assert client.get("/api/v1/jobs").json()["results"] == []
