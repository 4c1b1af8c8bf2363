"""The small parts of pages."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.core import clock
from portal.core.templatetags import slipway as tags

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("away", "words"),
    [
        (timedelta(seconds=-3), "just now"),
        (timedelta(seconds=3), "in a moment"),
        (timedelta(seconds=-59), "1 min ago"),
        (timedelta(minutes=-119), "1 h ago"),
        (timedelta(days=-13, hours=-23), "13 d ago"),
        (timedelta(days=13, hours=23), "in 14 d"),
        (timedelta(days=-30), "31 Oct"),
        (timedelta(days=-400), "26 Oct 2025"),
    ],
)
def test_instants_read_as_people_say_them(monkeypatch, away, words) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    html = tags.ago(NOW + away)
    assert f">{words}</time>" in html
    assert "UTC" in html


def test_a_missing_instant_is_a_dash() -> None:
    assert tags.ago(None) == "–"


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Ada Lovelace", "AL"),
        ("ada@example.org", "AE"),
        ("<script>", "·"),
        ("李小龙 🐉", "李"),
        ("", "·"),
    ],
)
def test_avatars_show_initials_of_any_name(name, letters) -> None:
    assert f">{letters}</span>" in tags.avatar(name)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"was": None, "is": 8}, "no limit → 8"),
        ({"h100": 8}, "h100 8"),
        ({}, "none"),
        (["read", "write"], "read, write"),
        ("<b>", "<b>"),
    ],
)
def test_facts_read_as_words(value, words) -> None:
    assert tags.fact(value) == words
