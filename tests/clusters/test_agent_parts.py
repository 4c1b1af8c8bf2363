"""The pure parts of the node agent: redaction, cutting, the journal, nvidia-smi, checkpoints."""

import base64
import binascii
import itertools
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.agent import slipway_agent as agent
from clusters.agent.slipway_agent import Cutter, Journal, Redactor, forms_of, frame_of, frames_in

MASK = agent.MASK


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def redact(words: set[bytes], parts: list[bytes]) -> bytes:
    redactor = Redactor(words)
    return b"".join(map(redactor.feed, parts)) + redactor.feed(b"", last=True)


few = st.binary(min_size=4, max_size=9).map(lambda b: bytes(97 + x % 3 for x in b))
cuts = st.lists(st.integers(0, 500), max_size=12)
secrets = st.text(min_size=4, max_size=40).map(str.encode)


@given(words=st.sets(few, min_size=1, max_size=5), texts=st.lists(few, max_size=20), places=cuts)
def test_redaction_does_not_depend_on_the_cuts(words, texts, places) -> None:
    text = b"".join(texts)
    whole = redact(words, [text])
    assert redact(words, cut_at(text, places)) == whole
    assert not any(word in part for word in words for part in whole.split(MASK))


@given(value=secrets, before=st.binary(max_size=9), after=st.binary(max_size=9), places=cuts)
def test_a_secret_is_redacted_wherever_it_stands(value, before, after, places) -> None:
    found = redact(forms_of(value), cut_at(b"<" + before + value + after + b">", places))
    assert value not in found.replace(MASK, b"")
    assert MASK in found


@given(value=secrets, before=st.binary(max_size=9), after=st.binary(max_size=9), places=cuts)
def test_a_secret_is_redacted_in_base64_of_what_surrounds_it(value, before, after, places) -> None:
    """At most one character at each side may still depend on it."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(before + value + after)
        found = redact(forms_of(value), cut_at(text, places))
        assert MASK in found
        left, right = found.split(MASK)[0], found.split(MASK)[-1]
        assert len(left) <= 4 * len(before) // 3 + 2
        assert len(right) <= 4 * len(after) // 3 + 4


@given(value=secrets, places=cuts)
def test_a_secret_is_redacted_when_url_encoded(value, places) -> None:
    for text in (quote(value), quote(value, safe=""), quote_plus(value)):
        for shown in (text, text.replace("%", "%").swapcase() if "%" in text else text):
            if shown != text and binascii.hexlify(value).isdigit():
                continue
            found = redact(forms_of(value), cut_at(text.encode(), places))
            assert found == MASK


def test_short_secrets_and_none_cost_nothing() -> None:
    assert forms_of(b"abc") == set()
    assert redact(set(), [b"any", b"thing"]) == b"anything"
    assert Redactor(set()).pattern is None


def test_the_line_end_of_a_secret_may_be_missing() -> None:
    assert redact(forms_of(b"secret-value\n"), [b"a secret-val", b"ue."]) == b"a " + MASK + b"."


@given(data=st.binary(max_size=2000), places=cuts)
def test_cutting_keeps_every_byte(data, places) -> None:
    cutter, chunks = Cutter(), []
    for part in cut_at(data, places):
        chunks += cutter.feed(part, 0.0)
    chunks += cutter.flush(last=True)
    assert b"".join(chunks) == data
    assert all(chunks)


@given(text=st.text(max_size=300), places=cuts)
def test_chunks_end_at_characters_and_lines(text, places) -> None:
    cutter = Cutter()
    for part in cut_at(text.encode(), places):
        for chunk in cutter.feed(part, 0.0):
            chunk.decode()
            assert chunk.endswith((b"\n", b"\r"))
        for chunk in cutter.flush():
            chunk.decode()


def test_a_long_line_is_cut_and_a_partial_one_is_held_for_a_while() -> None:
    cutter = Cutter()
    assert cutter.feed(b"half", 5.0) == []
    assert cutter.due_at == pytest.approx(5.1)
    assert cutter.feed(b" of it", 5.05) == []
    assert cutter.due_at == pytest.approx(5.1)
    assert cutter.flush() == [b"half of it"]
    assert cutter.due_at is None
    assert sum(map(len, cutter.feed(b"x" * 70_000, 6.0))) == 70_000
    assert max(map(len, cutter.feed(b"x" * 1_000_000 + b"\n", 7.0))) == 256 * 1024


frames = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2**40), st.floats(0, 2e9), st.binary(max_size=99)),
    max_size=8,
)


@given(many=frames, cut=st.integers(0, 2000), flip=st.integers(0, 2000))
def test_frames_are_read_up_to_the_last_whole_one(many, cut, flip) -> None:
    whole = [frame_of(*frame) for frame in many]
    block = b"".join(whole)
    assert [frame[:4] for frame in frames_in(block)] == many
    kept = [frame[:4] for frame in frames_in(block[:cut])]
    assert kept == many[: len(kept)]
    assert sum(map(len, whole[: len(kept) + 1])) > min(cut, len(block) - 1)
    if block:
        place = flip % len(block)
        broken = block[:place] + bytes([block[place] ^ 1]) + block[place + 1 :]
        read = [frame[:4] for frame in frames_in(broken)]
        assert read == many[: len(read)]
        assert sum(map(len, whole[: len(read)])) <= place


class Portal:
    """Keeps what `take` gave, as the portal does."""

    def __init__(self) -> None:
        self.acked, self.got, self.order = [0, 0], [b"", b""], []

    def post(self, chunks: list) -> list[int]:
        for stream, offset, _at, data in chunks:
            length = data if isinstance(data, int) else len(data)
            skip = self.acked[stream] - offset
            assert skip >= 0
            if skip >= length:
                continue  # a courier begins where the spool does
            text = b"?" * (length - skip) if isinstance(data, int) else data[skip:]
            self.got[stream] += text
            self.acked[stream] = offset + length
            self.order.append((stream, text))
        return list(self.acked)


outputs = st.lists(st.tuples(st.integers(0, 1), st.binary(min_size=1, max_size=3000)), max_size=30)


@settings(deadline=None)
@given(outputs=outputs, room=st.integers(1000, 9000), lost=st.sets(st.integers(0, 40)))
def test_the_journal_gives_everything_once_in_order(tmp_path_factory, outputs, room, lost) -> None:
    folder = tmp_path_factory.mktemp("spool")
    journal, portal = Journal(str(folder), 1 << 30), Portal()
    for number, (stream, data) in enumerate(outputs):
        journal.append(stream, data, float(number))
        if number % 3 == 0:
            acked = portal.post(journal.take(room)) if number not in lost else portal.acked
            journal.acknowledge(acked)
    journal = Journal.recover(str(folder)) if 7 in lost else journal
    while not journal.is_delivered():
        chunks = journal.take(room)
        assert chunks
        journal.acknowledge(portal.post(chunks))
    for stream in (0, 1):
        assert portal.got[stream] == b"".join(data for n, data in outputs if n == stream)
    assert b"".join(t for _s, t in portal.order) == b"".join(data for _n, data in outputs)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 4000), min_size=40, max_size=120), stop=st.integers(0, 60))
def test_a_full_journal_has_one_gap_in_the_middle(tmp_path_factory, sizes, stop) -> None:
    limit = 65536
    journal = Journal(str(tmp_path_factory.mktemp("spool")), limit)
    total = [b"", b""]
    for number, size in enumerate(sizes):
        data = os.urandom(size)
        total[number % 5 == 0] += data
        journal.append(int(number % 5 == 0), data, float(number))
        if number == stop:
            journal.acknowledge([0, 0])
    portal = Portal()
    if stop % 2:
        journal = Journal.recover(journal.folder)
        journal.acknowledge([0, 0])
    while not journal.is_delivered():
        journal.acknowledge(portal.post(journal.take(20_000)))
    for stream in (0, 1):
        assert len(portal.got[stream]) == len(total[stream])
        gaps = [text for n, text in portal.order if n == stream and set(text) == {ord("?")}]
        assert len([gap for gap in gaps if len(gap) > 3]) <= 1
    stored = sum(path.stat().st_size for path in Path(journal.folder).iterdir())
    assert stored <= limit * 1.2


def test_a_full_disk_keeps_some_in_memory_and_then_makes_a_gap(tmp_path) -> None:
    folder = tmp_path / "spool"
    folder.write_text("no folder")  # every file in it fails to open
    journal, portal = Journal(str(folder), 1 << 30), Portal()
    for _ in range(30):
        journal.append(0, b"x" * 100_000, 1.0)
    while not journal.is_delivered():
        journal.acknowledge(portal.post(journal.take(1_000_000)))
    text = portal.got[0]
    assert len(text) == 3_000_000
    assert text.count(b"x") == 2_000_000
    journal.append(0, b"y", 2.0)
    assert journal.take(1_000_000) == [(0, 3_000_000, 2.0, b"y")]


def test_a_full_disk_blocks_when_told_so(tmp_path) -> None:
    folder = tmp_path / "spool"
    folder.write_text("no folder")
    journal = Journal(str(folder), 1 << 30, blocks=True)
    assert not journal.is_full()
    for _ in range(11):
        journal.append(0, b"x" * 100_000, 1.0)
    assert journal.is_full()


def test_a_portal_that_lost_what_is_gone_here_gets_a_gap(tmp_path) -> None:
    journal = Journal(str(tmp_path / "spool"), 65536)
    for _ in range(5):
        journal.append(0, b"x" * 5000, 1.0)
        journal.take(100_000)
        journal.acknowledge([journal.ends[0], 0])
    journal.acknowledge([100, 0])
    stream, offset, _at, gap = journal.take(100_000)[0]
    assert (stream, offset, gap) == (0, 100, 24_900)


def test_gpus_are_read_and_what_is_not_known_is_absent() -> None:
    text = "0, 93, 1024, 81559, 433.78, 53\n1, [N/A], 59, 81559, [Not Supported], 42\n"
    series = agent.gpu_series(text, None)
    assert series['gpu_utilization_ratio{gpu="0"}'] == pytest.approx(0.93)
    assert series['gpu_memory_used_bytes{gpu="0"}'] == 1024 * 1024**2
    assert series['gpu_power_watts{gpu="0"}'] == 433.78
    assert 'gpu_utilization_ratio{gpu="1"}' not in series
    assert 'gpu_power_watts{gpu="1"}' not in series
    assert series['gpu_temperature_celsius{gpu="1"}'] == 42
    assert not any('"0"' in name for name in agent.gpu_series(text, ["1"]))


@pytest.mark.parametrize(
    "text",
    [
        "No devices were found\n",
        "Failed to initialize NVML: Driver/library version mismatch\n",
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.\n",
        "",
    ],
)
def test_what_nvidia_smi_says_in_place_of_data_is_no_data(text) -> None:
    assert agent.gpu_series(text, None) == {}


def nvidia_smi(folder: Path, script: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def test_the_tool_is_asked_for_the_jobs_gpus(tmp_path, monkeypatch) -> None:
    nvidia_smi(tmp_path, f'echo "$@" > {tmp_path}/words; echo "3, 50, 1, 2, 3, 4"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert 'gpu_utilization_ratio{gpu="3"}' in agent.Sampler(os.getpid(), None).sample()
    assert 'gpu_utilization_ratio{gpu="3"}' in agent.Sampler(os.getpid(), "2,3").sample()
    assert 'gpu_utilization_ratio{gpu="3"}' not in agent.Sampler(os.getpid(), "0,1").sample()
    assert 'gpu_utilization_ratio{gpu="3"}' in agent.Sampler(os.getpid(), "GPU-abc").sample()
    assert "--id=GPU-abc" in (tmp_path / "words").read_text()
    (tmp_path / "words").unlink()
    agent.Sampler(os.getpid(), "").sample()
    assert not (tmp_path / "words").exists()


def test_a_tool_that_fails_is_left_alone_for_a_while(tmp_path, monkeypatch) -> None:
    nvidia_smi(tmp_path, f"echo x >> {tmp_path}/calls; exit 9")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sampler = agent.Sampler(os.getpid(), None)
    for _ in range(3):
        assert not any(name.startswith("gpu") for name in sampler.sample())
    assert (tmp_path / "calls").read_text() == "x\n"


def test_checkpoints_that_are_replaced_are_seen_again(tmp_path) -> None:
    checkpoints = agent.Checkpoints(str(tmp_path / "later"))
    assert checkpoints.look() == []
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "last.pt").write_text("1")
    assert [found["name"] for found in checkpoints.look()] == ["last.pt"]
    assert checkpoints.look() == []
    (tmp_path / "later" / "last.tmp").write_text("22")
    assert checkpoints.look() == []
    (tmp_path / "later" / "last.tmp").rename(tmp_path / "later" / "last.pt")
    found = checkpoints.look()
    assert [(one["name"], one["bytes"]) for one in found] == [("last.pt", 2)]
    assert 0 <= found[0]["seconds"] < 1


def test_it_keeps_to_python_36() -> None:
    pytest.importorskip("vermin", reason="vermin knows what each Python has")
    checker = [sys.executable, "-c", "import vermin; vermin.main()"]
    command = [*checker, "-q", "-t=3.6-", "--violations", agent.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pauses_double_up_to_a_minute() -> None:
    for failures in range(1, 30):
        longest = min(60, 0.5 * 2**failures)
        assert longest / 2 <= agent.pause_after(failures) <= longest
