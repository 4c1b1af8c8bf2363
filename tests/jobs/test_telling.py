"""A job's life in words."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs import telling
from jobs.telling import Happening

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.01, "0 s"),
        (0.34, "0.3 s"),
        (41.9, "41 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (22_320, "6 h 12 min"),
        (3601, "1 h"),
        (86_400 * 3 + 3600, "3 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_spans_of_time(seconds: float, words: str) -> None:
    assert telling.duration(seconds) == words


@pytest.mark.parametrize(
    ("exit_code", "signal", "words"),
    [
        (None, None, ""),
        (0, None, "Exit code 0."),
        (3, None, "Exit code 3."),
        (127, None, "Exit code 127: the command was not found."),
        (137, None, "Exit code 137, signal 9: killed, often because memory ran out."),
        (None, 15, "Ended by signal 15: asked to end."),
        (143, 15, "Exit code 143, signal 15: asked to end."),
        (None, 50, "Ended by signal 50: ended from outside."),
        (255, None, "Exit code 255."),
    ],
)
def test_endings(exit_code: int | None, signal: int | None, words: str) -> None:
    assert telling.ending(exit_code, signal) == words


def at(seconds: float, phase: str = "", **more) -> Happening:
    kind = "phase" if phase else "wish"
    return Happening(at=NOON + timedelta(seconds=seconds), kind=kind, phase=phase, **more)


LIFE = [
    at(0, "QUEUED", actor="Ada"),
    at(60, "ADMITTED"),
    at(61, "SUBMITTED"),
    at(90, "RUNNING"),
    at(100, message="Asked to stop.", actor="Bob"),
    at(101, "STOPPING", reason="user"),
    at(110, "CANCELLED", reason="user"),
]


def test_a_story_is_read_from_its_end() -> None:
    lines = telling.story(LIFE)
    assert [line.title for line in lines] == [
        "Cancelled",
        "Stopping",
        "Asked to stop by Bob",
        "Running",
        "Handed to the cluster",
        "Admitted",
        "Launched by Ada",
    ]
    assert (lines[0].text, lines[0].took) == ("Somebody asked to stop it.", "after 9 s")


def test_the_last_line_says_how_the_command_ended() -> None:
    failed = at(95, "FAILED", reason="exit_code")
    lines = telling.story([*LIFE[:4], failed], ending="Exit code 3.")
    assert lines[0].text == "Exit code 3."


def test_the_strip_is_whole_and_leaves_wishes_out() -> None:
    spans = telling.spans(LIFE, now=NOON + timedelta(hours=1))
    assert [(s.word, s.took) for s in spans] == [
        ("Waited", "1 min"),
        ("Handed over", "1 s"),
        ("Started", "29 s"),
        ("Ran", "11 s"),
        ("Stopped", "9 s"),
    ]
    assert sum(span.width for span in spans) == pytest.approx(100, abs=0.01)
    assert telling.spans(LIFE[:4], now=NOON + timedelta(seconds=120))[-1].took == "30 s"
    assert telling.spans([], now=NOON) == []


def saved(number: int, **more: object) -> telling.Saved:
    values = {"at": NOON + timedelta(minutes=number), "name": f"step-{number}", "attempt": 1}
    return telling.Saved(**{**values, "bytes": 12_000_000, "seconds": 1.24, **more})


def test_the_newest_checkpoints_are_lines_and_the_others_one() -> None:
    assert telling.saved([]) == []
    lines = telling.saved([saved(number) for number in range(1, 101)])
    assert [line.title for line in lines] == [
        "Checkpoint step-100 complete, 12 MB in 1.2 s",
        "Checkpoint step-99 complete, 12 MB in 1.2 s",
        "Checkpoint step-98 complete, 12 MB in 1.2 s",
        "97 more checkpoints before",
    ]
    assert lines[-1].text == "The first was step-1."


def test_a_checkpoint_that_several_nodes_saw_is_one_line() -> None:
    of_two = [saved(1, seconds=None, bytes=512), saved(1, seconds=None, bytes=512)]
    assert [line.title for line in telling.saved(of_two)] == ["Checkpoint step-1 complete, 512 B"]
    again = telling.saved([saved(1), saved(1, attempt=2, at=NOON + timedelta(hours=1))])
    assert len(again) == 2


def test_stories_are_merged_newest_first() -> None:
    first = Happening(at=NOON, kind="phase", phase="QUEUED")
    last = Happening(at=NOON + timedelta(minutes=5), kind="phase", phase="RUNNING")
    merged = telling.merged(telling.story([first, last]), telling.saved([saved(2)]))
    assert [line.title.split()[0] for line in merged] == ["Running", "Checkpoint", "Launched"]
    assert merged[0].took == "after 5 min"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (12_345_678, "12 MB"),
        (3_400_000_000, "3.4 GB"),
    ],
)
def test_sizes(count: int, words: str) -> None:
    assert telling.size(count) == words
