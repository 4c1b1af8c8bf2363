"""Logs that no honest job writes, read in pieces that no honest client asks for."""

import pytest

from jobs.logs import read, search
from tests.jobs.makers import OUT, chunk, make_job, post
from tests.people import World, api_client, make_world

MOST = 200 << 10


@pytest.fixture
def world(db) -> World:
    return make_world()


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_below_a_character_still_comes_to_the_end(world: World, limit: int) -> None:
    job, token = make_job(world)
    said = "a😀é\n"
    post(token, chunk(OUT, 0, said.encode()))
    client, offset, found = api_client(world.people["viewer"]), 0, ""
    while offset < len(said.encode()):
        path = f"/api/v1/jobs/{job.pk}/logs?offset={offset}&limit={limit}"
        piece = client.get(path).json()
        assert piece["next_offset"] > offset
        offset, found = piece["next_offset"], found + piece["text"]
    assert found == said


@pytest.mark.parametrize("before", [-3, 0, 3])
def test_search_finds_what_lies_across_two_steps_of_one_endless_line(
    world: World, before: int
) -> None:
    job, token = make_job(world)
    line = bytearray(b"x" * (2 * search.STEP_BYTES + MOST))
    at = search.STEP_BYTES - before
    line[at : at + 6] = b"needle"
    for offset in range(0, len(line), MOST):
        post(token, chunk(OUT, offset, bytes(line[offset : offset + MOST])))
    found = search.search(read.head(job.pk), "Needle", offset=0)
    assert ([hit.offset for hit in found.hits], found.complete) == ([at], True)
