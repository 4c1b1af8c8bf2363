"""Spans of time as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("2 h 30 min", 9000),
        ("2h30m", 9000),
        ("1.5 hours", 5400),
        ("1,5 h", 5400),
        ("1:30:00", 5400),
        ("2-00:00:00", 172800),
        ("3 Days, 4 minutes", 259440),
        (" 45 s ", 45),
    ],
)
def test_people_write_it_in_many_ways(text, seconds) -> None:
    assert durations.parse(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "2 parsecs", "-5", "1 h and a bit", "h", "1:2", "٣"])
def test_what_is_no_span_is_said(text) -> None:
    with pytest.raises(ValueError, match="no span"):
        durations.parse(text)


@given(st.integers(0, 10**8))
def test_what_is_written_is_read_again(seconds) -> None:
    assert durations.parse(durations.write(seconds)) == seconds
