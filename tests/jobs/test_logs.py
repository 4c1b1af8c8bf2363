"""Output as text by byte offsets."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.text import as_text


@given(st.text(), st.integers(1, 7))
def test_pieces_of_any_size_make_the_whole(text, size) -> None:
    raw, offset, found = text.encode("utf-8", "replace"), 0, ""
    while offset < len(raw):
        data = raw[offset : offset + size + 3]
        piece = as_text(data, offset=offset, complete=offset + len(data) == len(raw))
        assert piece.next_offset > offset
        found, offset = found + piece.text, piece.next_offset
    assert found == raw.decode()


def test_invalid_bytes_are_shown_and_counted() -> None:
    piece = as_text(b"a\xffb\xc3", offset=10, complete=False)
    assert (piece.text, piece.next_offset) == ("a\ufffdb", 13)
    assert as_text(b"\xc3", offset=13, complete=True).text == "\ufffd"
