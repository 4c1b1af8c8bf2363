"""The node agent: runs one command and brings its output, samples and end to the portal.

    python3 -I slipway_agent.py run -- ARGV...     runs the command and ends the way it did
    python3 -I slipway_agent.py deliver DIR        delivers what an agent left in DIR (the courier)

One file, Python 3.6 or newer, standard library only. It is configured by SLIPWAY_AGENT_* in the
environment; `docs/agent.md` describes them, the protocol and the limits. The main thread reads the
command's pipes, redacts secrets, and appends to a journal on disk; one thread posts from there, so
a portal that is slow or away never holds the command up. Two more take samples and look for
checkpoints.
"""

import binascii
import collections
import contextlib
import ctypes
import errno
import fcntl
import io
import json
import os
import re
import selectors
import signal
import struct
import sys
import threading
import time

VERSION = "1"
STREAMS = ("stdout", "stderr")
MASK = "••••".encode()
FORWARDED = ("TERM", "INT", "HUP", "USR1", "USR2", "CONT")
OWN_FAILURE = 125  # exit code when the command could not even be tried

READ_BYTES = 64 * 1024
PARTIAL_BYTES = 64 * 1024  # of a line that does not end
CHUNK_BYTES = 256 * 1024
POST_BYTES = 512 * 1024  # the protocol allows 1 MiB; this keeps memory below 30 MiB
BLOCK_BYTES = CHUNK_BYTES + 64 * 1024  # holds the largest frame
SEGMENT_BYTES = 4 * 1024 * 1024
MEMORY_BYTES = 2 * 1024 * 1024  # of output kept in memory while the disk is full
ROOM_AT_LEAST = 16 * 1024
ANSWER_BYTES = 4 * 1024 * 1024
SAMPLES_KEPT, SAMPLES_A_POST, CHECKPOINTS_A_POST = 700, 60, 100
ENTRIES_COUNTED = 10000

PARTIAL_SECONDS = 0.1
KILL_SECONDS = 8.0  # from TERM to KILL
DRAIN_SECONDS = 2.0  # for pipes that outlive the command
DELIVER_SECONDS = 5.0  # after the end
COURIER_SECONDS = 3600.0
LOCK_SECONDS = 10.0  # for a courier that looks into a folder before its agent does
HEARTBEAT_SECONDS = 12.0
ANSWER_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 60.0
FULL_POST_SHARE = 0.05  # of the pace, while more than half a post waits
SAME_STOP_SECONDS = 60.0  # a signal twice within this, from portal and scheduler, is one
TOOL_SECONDS, NO_TOOL_SECONDS, FAULTY_TOOL_SECONDS = 10.0, 300.0, 30.0

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4  # prctl(2)
SESSION, TIMES = 3, slice(11, 15)  # numbers in /proc/PID/stat, counted after the name: proc(5)


# What is configured


class Settings:
    """What the environment says; SLIPWAY_AGENT_* is taken out of it, so that no child has it."""

    def __init__(self, environ):
        def number(name, default):
            text = environ.get(name, "")
            return int(text) if text.isdigit() else default

        self.url = environ.get("SLIPWAY_AGENT_URL", "").rstrip("/")
        self.token = environ.get("SLIPWAY_AGENT_TOKEN", "")
        self.folder = environ.get("SLIPWAY_AGENT_DIR", "")
        self.wants_secrets = environ.get("SLIPWAY_AGENT_SECRETS") == "1"
        self.spool_bytes = number("SLIPWAY_AGENT_SPOOL_BYTES", 1024**3)
        self.blocks = environ.get("SLIPWAY_AGENT_SPOOL_FULL") == "block"
        self.sample_seconds = number("SLIPWAY_AGENT_SAMPLE_SECONDS", 5)
        self.restart = number("SLIPWAY_AGENT_RESTART", 0)
        self.rank = number("SLIPWAY_NODE_RANK", 0)
        self.checkpoints = environ.get("SLIPWAY_CHECKPOINT_DIR", "")
        self.gpus = environ.get("CUDA_VISIBLE_DEVICES")
        for name in [name for name in environ if name.startswith("SLIPWAY_AGENT_")]:
            wipe(name)
            del environ[name]


def libc():
    """Return the C library."""
    return ctypes.CDLL(None)


def wipe(name):
    """Overwrite the value in the block that /proc/PID/environ shows."""
    getenv = libc().getenv
    getenv.restype, getenv.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    address = getenv(name.encode())
    if address:
        ctypes.memset(address, ord("*"), len(ctypes.string_at(address)))


# From bytes that were read to frames


class Redactor:
    """Replaces secrets in one stream, wherever they begin and end across reads.

    The result is the same for any way of cutting the stream into reads.
    """

    def __init__(self, words):
        self.words = sorted(words, key=lambda word: (-len(word), word))
        self.pattern = re.compile(b"|".join(map(re.escape, self.words))) if words else None
        self.short = {word[:size] for word in self.words for size in (1, 2, 3)}
        self.held = b""

    def feed(self, data, last=False):
        """Return what can be passed on; with `last`, all of it."""
        if self.pattern is None:
            return data
        text = self.held + data
        holds = [] if last else sorted(self._beginnings(text))
        holds.append(len(text))
        found, position, index = [], 0, 0
        is_clean = not any(word in text for word in self.words)
        while True:
            while holds[index] < position:
                index += 1
            match = None if is_clean else self.pattern.search(text, position)
            if match is None or holds[index] <= match.start():
                break
            found += [text[position : match.start()], MASK]
            position = match.end()
        found.append(text[position : holds[index]])
        self.held = text[holds[index] :]
        return b"".join(found)

    def _beginnings(self, text):
        """Return the places from which the text to its end might be the beginning of a secret."""
        places = {len(text) - n for n in (1, 2, 3) if n <= len(text) and text[-n:] in self.short}
        for word in self.words:
            head, place = word[:4], max(0, len(text) - len(word) + 1)
            while True:
                place = text.find(head, place)
                if place < 0:
                    break
                if word.startswith(text[place:]):
                    places.add(place)
                place += 1
        return places


def forms_of(value):
    """Return the forms in which output may show a secret: as it is, in base64, URL-encoded.

    Within a longer text in base64 a value begins at one of three places, and its first and last
    character there may depend on its neighbours; those are left.
    """
    from urllib.parse import quote, quote_plus

    forms = set()
    for raw in {value, value.strip()}:
        if len(raw) < 4:
            continue
        forms.add(raw)
        for encoded in [quote(raw), quote(raw, safe=""), quote(raw, safe="!'()*"), quote_plus(raw)]:
            forms.add(encoded.encode())
            forms.add(re.sub("%..", lambda found: found.group().lower(), encoded).encode())
        texts = [binascii.b2a_base64(raw, newline=False)]
        texts.append(texts[0].rstrip(b"="))
        for before in range(3):
            text = binascii.b2a_base64(b"\0" * before + raw, newline=False)
            texts.append(text[-(-8 * before // 6) : 8 * (before + len(raw)) // 6])
        forms.update(texts)
        forms.update(text.replace(b"+", b"-").replace(b"/", b"_") for text in texts)
    return forms


def border(data, limit):
    """Return the last place up to `limit` in front of which no character of UTF-8 is cut in two."""
    for back in range(1, min(3, limit) + 1):
        byte = data[limit - back]
        if byte & 0xC0 != 0x80:  # the first byte of a character
            size = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return limit - back if size > back else limit
    return limit


class Cutter:
    """Cuts one stream into chunks: at line ends where there are some, always at UTF-8 borders.

    What comes after the last line end is held until `due_at`, or until it has grown long.
    """

    def __init__(self):
        self.held, self.due_at = b"", None

    def feed(self, data, now):
        """Return the chunks that are ready."""
        text = self.held + data
        cut = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if cut or not self.held:
            self.due_at = now + PARTIAL_SECONDS
        if len(text) - cut >= PARTIAL_BYTES:
            cut = border(text, len(text))
        return self._cut(text, cut)

    def flush(self, last=False):
        """Return what was held; without `last` an unfinished character stays."""
        text = self.held
        chunks = self._cut(text, len(text) if last else border(text, len(text)))
        self.due_at = None
        return chunks

    def _cut(self, text, end):
        self.held = text[end:]
        if not self.held:
            self.due_at = None
        chunks, begin = [], 0
        while begin < end:
            piece = text[begin : min(begin + CHUNK_BYTES, end)]
            if begin + len(piece) < end:
                piece = piece[: border(piece, len(piece))]
            chunks.append(piece)
            begin += len(piece)
        return chunks


# The journal: everything that was read and is not yet acknowledged

FRAME = struct.Struct(">BQdII")  # stream, offset, time, length, checksum


def frame_of(stream, offset, at, data):
    """Return the bytes of a frame."""
    crc = binascii.crc32(data, binascii.crc32(FRAME.pack(stream, offset, at, len(data), 0)))
    return FRAME.pack(stream, offset, at, len(data), crc) + data


def frames_in(block):
    """Yield (stream, offset, time, data, place behind it) up to the last whole frame."""
    place = 0
    while place + FRAME.size <= len(block):
        stream, offset, at, length, _crc = FRAME.unpack_from(block, place)
        end = place + FRAME.size + length
        if stream >= len(STREAMS) or end > len(block):
            return
        data = block[place + FRAME.size : end]
        if frame_of(stream, offset, at, data)[: FRAME.size] != block[place : place + FRAME.size]:
            return
        place = end
        yield stream, offset, at, data, place


class Segment:
    """A part of the journal: a file, or without a path memory.

    A stub stands for dropped segments: empty frames that say how far each stream had come.
    """

    def __init__(self, number, path=None, size=0):
        self.number, self.path, self.size = number, path, size
        self.ends, self.is_stub = [0, 0], False
        self.file = None if path else io.BytesIO()

    def append(self, frame):
        """Write a whole frame or raise `OSError` and leave none."""
        file = self._open()
        file.seek(self.size)
        try:
            written = file.write(frame)
            if written != len(frame):
                raise OSError(errno.ENOSPC, "disk full")
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(self.size)
            raise
        self.size += len(frame)

    def read(self, place, length):
        """Return up to `length` bytes from that place; none of what cannot be read any more."""
        if place >= self.size:
            return b""
        try:
            file = self._open()
            file.seek(place)
            return file.read(min(length, self.size - place))
        except OSError:
            return b""

    def close(self):
        """Let go of the file; it is opened again when needed."""
        if self.path and self.file:
            self.file.close()
            self.file = None

    def remove(self):
        """Let it be gone."""
        self.close()
        if self.path:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _open(self):
        if self.file is None:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            self.file = io.FileIO(descriptor, "r+")
        return self.file


class Journal:
    """What was read, in the order in which it was read, until the portal has it.

    `ends` counts the bytes of each stream so far, `acked` those that the portal has, `sent` those
    that were handed out by `take`. Bytes that lie between two frames are gone: they become a gap.
    """

    def __init__(self, folder, limit, blocks=False):
        self.folder, self.limit, self.blocks = folder, limit, blocks
        self.segment_bytes = max(4096, min(SEGMENT_BYTES, limit // 16))
        self.lock = threading.Lock()
        self.segments, self.number, self.disk_again_at = [], 0, 0.0
        self.ends, self.acked, self.sent = [0, 0], [0, 0], [0, 0]
        self.cursor = (0, 0)  # number of a segment and place within it
        with contextlib.suppress(OSError):
            os.makedirs(folder, 0o700, exist_ok=True)

    @classmethod
    def recover(cls, folder):
        """Return the journal that an agent left there, up to the last whole frame of each part."""
        journal = cls(folder, 1 << 62)
        first = [None, None]
        names = [name for name in os.listdir(folder) if name.isdigit()]
        for name in sorted(names, key=int):
            segment = Segment(int(name), os.path.join(folder, name), 1 << 62)
            size = 0
            for stream, offset, _at, data, segment_end in journal._frames(segment, 0):
                size = segment_end
                journal.ends[stream] = offset + len(data)
                first[stream] = offset if first[stream] is None else first[stream]
            segment.size, segment.ends = size, list(journal.ends)
            segment.close()
            journal.segments.append(segment)
            journal.number = segment.number + 1
        journal.sent = [offset or 0 for offset in first]
        journal.acked = list(journal.sent)
        journal.cursor = (journal.segments[0].number if journal.segments else 0, 0)
        return journal

    def append(self, stream, data, at):
        """Add a chunk of at most 256 KiB."""
        with self.lock:
            frame = frame_of(stream, self.ends[stream], at, data)
            self.ends[stream] += len(data)
            segment = self._write(frame)
            if segment:
                segment.ends = list(self.ends)
            if not self.blocks:
                self._drop()

    def is_full(self):
        """Tell whether the pipes are to be left alone until more has been delivered."""
        if not self.blocks:
            return False
        with self.lock:
            in_memory = sum(s.size for s in self.segments if not s.path)
            return self._size() > self.limit or in_memory > MEMORY_BYTES // 2

    def has_unsent(self):
        """Tell whether `take` has something."""
        return any(sent < end for sent, end in zip(self.sent, self.ends))

    def is_delivered(self):
        """Tell whether the portal has everything."""
        return all(acked >= end for acked, end in zip(self.acked, self.ends))

    def waiting_bytes(self):
        """Return how much was not yet handed out."""
        return sum(max(0, end - sent) for sent, end in zip(self.sent, self.ends))

    def take(self, room):
        """Return the next chunks, as (stream, offset, time, bytes or length of a gap)."""
        chunks = []
        with self.lock:
            for segment, place, frame in self._from_cursor():
                stream, offset, at, data, _end = frame
                if offset > self.sent[stream]:
                    chunks.append((stream, self.sent[stream], at, offset - self.sent[stream]))
                    self.sent[stream] = offset
                    room -= 200
                data = data[self.sent[stream] - offset :]
                fits = max(0, (room - 200) * 3 // 4)
                if len(data) > fits:
                    if not chunks:
                        data = data[: border(data, fits)]
                        self._put(chunks, stream, at, data)
                    break
                if data:
                    room -= self._put(chunks, stream, at, data)
                self.cursor = (segment.number, place)
            else:
                for stream, end in enumerate(self.ends):
                    if self.sent[stream] < end:
                        missing = end - self.sent[stream]
                        chunks.append((stream, self.sent[stream], time.time(), missing))
                        self.sent[stream] = end
        for index, chunk in enumerate(chunks):
            if isinstance(chunk[3], list):
                chunks[index] = chunk[:3] + (b"".join(chunk[3]),)
        return chunks

    def acknowledge(self, acked):
        """Go on from where the portal is, be it back; return whether it moved on."""
        with self.lock:
            moved = any(new > old for new, old in zip(acked, self.acked))
            if any(new < sent for new, sent in zip(acked, self.sent)):
                self.cursor = (0, 0)
            self.acked, self.sent = list(acked), list(acked)
            while self.segments and self._is_done(self.segments[0]):
                self.segments.pop(0).remove()
            return moved

    def remove(self):
        """Delete what is left of it."""
        for segment in self.segments:
            segment.remove()

    def _is_done(self, segment):
        is_open = segment is self.segments[-1] and segment.size < self.segment_bytes // 8
        return not is_open and all(a >= e for a, e in zip(self.acked, segment.ends))

    def _put(self, chunks, stream, at, data):
        """Add data to the last chunk if it goes on there within a second; return what it costs."""
        last = chunks[-1] if chunks else None
        is_open = last and last[0] == stream and isinstance(last[3], list) and at - last[2] < 1
        if is_open and sum(map(len, last[3])) + len(data) <= CHUNK_BYTES:
            last[3].append(data)
            cost = 4
        else:
            chunks.append((stream, self.sent[stream], at, [data]))
            cost = 200
        self.sent[stream] += len(data)
        return cost + len(data) * 4 // 3

    def _from_cursor(self):
        """Yield (segment, place behind the frame, frame) from the cursor on."""
        number, place = self.cursor
        for segment in [s for s in self.segments if s.number >= number]:
            for frame in self._frames(segment, place if segment.number == number else 0):
                yield segment, frame[4], frame
            if segment is not self.segments[-1]:
                segment.close()

    @staticmethod
    def _frames(segment, place):
        while True:
            end = place
            for frame in frames_in(segment.read(place, BLOCK_BYTES)):
                end = place + frame[4]
                yield frame[:4] + (end,)
            if end == place:
                return
            place = end

    def _size(self):
        return sum(segment.size for segment in self.segments)

    def _write(self, frame):
        """Write to the disk, or while it is full to memory; `None` when there is no room at all."""
        now = time.monotonic()
        if now >= self.disk_again_at:
            try:
                last = self.segments[-1] if self.segments else None
                if last is None or not last.path or last.size >= self.segment_bytes:
                    last = self._add(os.path.join(self.folder, "%08d" % self.number))
                last.append(frame)
            except OSError:
                self.disk_again_at = now + 1
            else:
                return last
        last = self.segments[-1] if self.segments else None
        if sum(s.size for s in self.segments if not s.path) + len(frame) > MEMORY_BYTES:
            return None
        if last is None or last.path:
            last = self._add(None)
        last.append(frame)
        return last

    def _add(self, path):
        if self.segments:
            self.segments[-1].close()
        segment = Segment(self.number, path)
        segment.ends = list(self.segments[-1].ends) if self.segments else list(self.acked)
        self.number += 1
        self.segments.append(segment)
        return segment

    def _drop(self):
        """Let the middle go while there is too much: the first half and the newest part stay.

        A gap that is there grows, so that there is one.
        """
        while self._size() > self.limit and len(self.segments) > 2:
            stubs = [index for index, segment in enumerate(self.segments) if segment.is_stub]
            middle, kept = stubs[-1] + 1 if stubs else 0, 0
            while not stubs and middle < len(self.segments) - 2:
                kept += self.segments[middle].size
                if kept > self.limit // 2:
                    break
                middle += 1
            if middle >= len(self.segments) - 1:
                return
            self._make_stub(middle)

    def _make_stub(self, index):
        """Put a stub in the place of a segment, one for neighbours."""
        gone = self.segments.pop(index)
        if index and self.segments[index - 1].is_stub:
            gone.remove()
            gone.number, gone.path = self.segments[index - 1].number, self.segments[index - 1].path
            self.segments.pop(index - 1).close()
            index -= 1
        frames = [frame_of(n, end, time.time(), b"") for n, end in enumerate(gone.ends)]
        stub = Segment(gone.number, gone.path)
        try:
            gone.close()
            if gone.path:
                with open(gone.path + ".new", "wb") as file:
                    file.write(b"".join(frames))
                os.rename(gone.path + ".new", gone.path)
                stub.size = sum(map(len, frames))
        except OSError:
            gone.remove()
            stub = Segment(gone.number)
        if not stub.path:
            for frame in frames:
                stub.append(frame)
        stub.ends, stub.is_stub = gone.ends, True
        self.segments.insert(index, stub)
        if self.cursor[0] >= stub.number and self.cursor[0] < self.segments[index + 1].number:
            self.cursor = (stub.number, 0)


# Speaking to the portal


class Portal:
    """HTTP to the portal, over one connection that is kept."""

    def __init__(self, url, token):
        if not url.startswith("https:"):
            sys.modules.setdefault("ssl", None)  # http.client would load it, for 4 MiB
        import http.client

        if sys.modules.get("ssl", True) is None:
            del sys.modules["ssl"]
        self.http = http.client
        self.errors = (OSError, http.client.HTTPException, ValueError)
        scheme, _, rest = url.partition("://")
        self.host, slash, path = rest.partition("/")
        self.kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        self.path = slash + path + "/api/agent/v1"
        self.headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self.connection = None

    def post(self, path, body):
        """Return status, `Retry-After` in seconds or `None`, and the answer.

        Raises one of `errors` when there was no answer.
        """
        is_kept = self.connection is not None
        try:
            return self._post(path, body)
        except self.errors as error:
            self.close()
            # The portal closes connections that were quiet; a post may be repeated.
            if is_kept and isinstance(error, (ConnectionError, self.http.HTTPException)):
                return self._post(path, body)
            raise

    def close(self):
        """Drop the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _post(self, path, body):
        if self.connection is None:
            self.connection = self.kind(self.host, timeout=ANSWER_SECONDS)
        self.connection.request("POST", self.path + path, body, self.headers)
        response = self.connection.getresponse()
        text = response.read(ANSWER_BYTES)
        if not response.isclosed() or response.will_close:
            self.close()
        after = response.getheader("Retry-After", "")
        answer = json.loads(text.decode()) if response.status == 200 else None
        return response.status, int(after) if after.isdigit() else None, answer


def pause_after(failures):
    """Return seconds to wait after that many failures in a row: doubling, at most 60, jittered."""
    longest = min(LONGEST_PAUSE_SECONDS, 0.5 * 2 ** min(failures, 10))
    return longest * (0.5 + os.urandom(1)[0] / 510)


class Poster:
    """Posts what the journal holds, samples, checkpoints and the end; knows what was delivered."""

    def __init__(self, journal, portal, identity, told=lambda: None):
        self.journal, self.portal, self.identity, self.told = journal, portal, identity, told
        self.news = threading.Condition()
        self.samples = collections.deque(maxlen=SAMPLES_KEPT)
        self.checkpoints, self.report, self.stop = [], None, None
        self.flush_seconds, self.sample_seconds = 1.0, None
        self.room, self.seq, self.failures = POST_BYTES, 0, 0
        self.began_at, self.retry_at, self.sleeps_until = -1e9, None, -1e9
        self.is_last = self.is_refused = False

    def tell(self):
        """Wake the thread that posts, if there is something to do earlier than it thinks."""
        with self.news:
            if self._next_at() < self.sleeps_until:
                self.news.notify()

    def finish(self, report):
        """Deliver the rest without pauses, and the report with it."""
        with self.news:
            self.report, self.is_last, self.retry_at = report, True, None
            self.news.notify()

    def work(self, until=None):
        """Post until all is delivered after `finish`, the token has ended, or that instant."""
        while not self.is_refused and not (self.is_last and self.is_delivered()):
            with self.news:
                self.sleeps_until = self._next_at()
                wait = self.sleeps_until - time.monotonic()
                if wait > 0:
                    self.news.wait(wait)
                self.sleeps_until = -1e9
                if wait > 0:
                    continue
            if until is not None and time.monotonic() >= until:
                return
            self._post()

    def is_delivered(self):
        """Tell whether nothing is left that must reach the portal."""
        return self.journal.is_delivered() and not self.checkpoints and self.report is None

    def _next_at(self):
        if self.retry_at is not None:
            return self.retry_at
        waiting = self.journal.waiting_bytes()
        if not (waiting or self.samples or self.checkpoints or self.report):
            return self.began_at + HEARTBEAT_SECONDS
        if self.is_last:
            return 0
        pause = self.flush_seconds
        if waiting >= POST_BYTES // 2:
            pause *= FULL_POST_SHARE
        return self.began_at + pause

    def _post(self):
        self.began_at, self.retry_at = time.monotonic(), None
        samples = [self.samples[n] for n in range(min(len(self.samples), SAMPLES_A_POST))]
        checkpoints = self.checkpoints[:CHECKPOINTS_A_POST]
        rest = {"seq": self.seq, "samples": samples, "checkpoints": checkpoints}
        room = self.room - len(json.dumps(dict(self.identity, **rest))) - 1024
        chunks = self.journal.take(max(room, ROOM_AT_LEAST))
        report = self.report
        if self.journal.has_unsent():
            report = None  # it comes with the last chunks
        head = json.dumps(dict(self.identity, exit=report, **rest)).encode()
        for index, chunk in enumerate(chunks):
            chunks[index] = self._chunk(*chunk)  # in place, so that large ones are soon free
        body = b'%s,"chunks":[%s]}' % (head[:-1], b",".join(chunks))
        has_chunks = bool(chunks)
        self.seq, chunks = self.seq + 1, None
        try:
            status, after, answer = self.portal.post("/posts", body)
            if status == 200:
                acked = [int(answer["acked"][stream]) for stream in STREAMS]
        except self.portal.errors + (KeyError, TypeError):
            status, after, answer = 0, None, None
        if status == 200:
            moved = self.journal.acknowledge(acked)
            for sample in samples:
                if self.samples and self.samples[0] is sample:
                    self.samples.popleft()
            del self.checkpoints[: len(checkpoints)]
            if report is not None:
                self.report = None
            self._obey(answer)
            if moved or not has_chunks or self.journal.is_delivered():
                self.failures, self.room = 0, min(POST_BYTES, self.room * 2)
                return
        else:
            self.journal.acknowledge(self.journal.acked)
            self.is_refused = status in (401, 403, 410)
            if status in (400, 413, 422):
                self._shrink()
        self._fail(after)

    def _fail(self, after):
        """Come back later."""
        self.failures += 1
        pause = pause_after(self.failures) if after is None else min(after, 600)
        self.retry_at = time.monotonic() + (min(pause, 0.5) if self.is_last else pause)

    def _shrink(self):
        """Post less after an answer that said malformed; at last without samples."""
        self.room //= 2
        if self.room < ROOM_AT_LEAST:
            self.room = ROOM_AT_LEAST
            self.samples.clear()
            del self.checkpoints[:CHECKPOINTS_A_POST]

    def _obey(self, answer):
        """Take pace and stop level from an answer, as far as they make sense."""
        with contextlib.suppress(TypeError, ValueError):
            self.flush_seconds = min(5.0, max(0.05, float(answer["flush_after_ms"]) / 1000))
        with contextlib.suppress(TypeError, ValueError, KeyError):
            self.sample_seconds = min(3600.0, max(1.0, float(answer["sample_every_seconds"])))
        if isinstance(answer.get("stop"), dict):
            self.stop = answer["stop"]
        self.told()

    @staticmethod
    def _chunk(stream, offset, at, data):
        """Return a chunk as JSON; by hand, so that large ones are copied only once."""
        if isinstance(data, int):
            rest = b'"gap":%d,"reason":"spool_full"' % data
        else:
            rest = b'"data":"%s"' % binascii.b2a_base64(data, newline=False)
        head = b'{"stream":"%s","offset":%d,"at":%.6f,' % (STREAMS[stream].encode(), offset, at)
        return head + rest + b"}"


# The command


class Told(Exception):
    """A signal came before the command was started."""


class Failed(Exception):
    """The command cannot be started; the message goes into its report."""


def start(argv, environment):
    """Start the command as the leader of a session of its own; return its id and two pipes.

    Raises `OSError` when it cannot be run.
    """
    (out, out_end), (err, err_end), (answer, answer_end) = os.pipe(), os.pipe(), os.pipe()
    prctl = libc().prctl
    child = os.fork()
    if child == 0:
        number = errno.ENOEXEC
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            for name in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(name, signal.SIG_DFL)
            for opened, place in (
                (os.open(os.devnull, os.O_RDONLY), 0),
                (out_end, 1),
                (err_end, 2),
            ):
                os.dup2(opened, place)
            os.execvpe(argv[0], argv, environment)
        except OSError as error:
            number = error.errno
        finally:
            os.write(answer_end, b"%d" % number)
            os._exit(127)
    for end in (out_end, err_end, answer_end):
        os.close(end)
    with open(answer, "rb") as file:
        failed = file.read()
    if failed:
        os.waitpid(child, 0)
        os.close(out)
        os.close(err)
        raise OSError(int(failed), os.strerror(int(failed)))
    return child, out, err


def stat_of(pid):
    """Return the words after the name in /proc/PID/stat; none when it is gone."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def session_of(leader):
    """Return {process id: its words of `stat_of`} of a session, without what has ended."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            words = stat_of(name)
            if len(words) > SESSION and words[0] != b"Z" and int(words[SESSION]) == leader:
                found[int(name)] = words
    return found


def kill_session(leader):
    """Kill every process of the session; return whether there was one."""
    found = session_of(leader)
    for pid in found:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


class Stream:
    """One of the command's pipes on its way into the journal."""

    def __init__(self, index, pipe, words, journal):
        self.index, self.pipe, self.journal = index, pipe, journal
        self.redactor, self.cutter, self.is_open = Redactor(words), Cutter(), True
        os.set_blocking(pipe, False)

    def read(self):
        """Take what the pipe has, at most 64 KiB; return whether there was something."""
        try:
            data = os.read(self.pipe, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self.write(data)
        else:
            self.is_open = False
        return bool(data)

    def write(self, data):
        """Take output."""
        self._append(self.cutter.feed(self.redactor.feed(data), time.monotonic()))

    def flush(self, now):
        """Let go of a partial line that was held long enough."""
        if self.cutter.due_at is not None and now >= self.cutter.due_at:
            self._append(self.cutter.flush())

    def close(self):
        """Let go of everything."""
        chunks = self.cutter.feed(self.redactor.feed(b"", last=True), time.monotonic())
        self._append(chunks + self.cutter.flush(last=True))

    def _append(self, chunks):
        for chunk in chunks:
            self.journal.append(self.index, chunk, time.time())


class Run:
    """One run of the command from before its start to its end; all in the main thread."""

    def __init__(self, settings, folder):
        self.settings, self.folder = settings, folder
        self.child, self.streams, self.ended_at = None, [], None
        self.early, self.is_asking = [], settings.wants_secrets
        self.kill_at = self.term_at = self.drain_until = None
        self.stop_signal, self.received = None, {}  # portal and scheduler may both say it
        self.selector = selectors.DefaultSelector()
        self.woken, self.wake_end = os.pipe()
        for end in (self.woken, self.wake_end):
            os.set_blocking(end, False)
        self.selector.register(self.woken, selectors.EVENT_READ)
        identity = {
            "agent": {
                "version": VERSION,
                "boot": binascii.hexlify(os.urandom(8)).decode(),
                "host": os.uname().nodename,
                "python": "%d.%d.%d" % sys.version_info[:3],
            },
            "rank": settings.rank,
            "restart": settings.restart,
        }
        folder.write("agent.json", identity)
        folder.reserve("exit.json")
        self.portal = Portal(settings.url, settings.token)
        self.journal = Journal(folder.path("spool"), settings.spool_bytes, settings.blocks)
        self.poster = Poster(self.journal, self.portal, identity, self._hear)
        self.poster.sample_seconds = settings.sample_seconds
        self.has_ended, self.thread = threading.Event(), None

    def go(self, argv):
        """Run the command; return how it ended, as the report says it."""
        begun_at, name = time.time(), self.settings.checkpoints
        checkpoints = Checkpoints(name) if name else None
        try:
            self._listen()
            secrets = self._ask_secrets() if self.settings.wants_secrets else {}
            self.is_asking = False
            forms = set().union(*map(forms_of, secrets.values()))
            begun_at, environment = time.time(), dict(os.environb)
            environment.update(secrets)
            self.child, *pipes = start(argv, environment)
        except Told as told:
            return report_of(begun_at, number=told.args[0])
        except Failed as failed:
            self._say(str(failed))
            return report_of(begun_at, code=OWN_FAILURE, error=str(failed))
        except (OSError, ValueError) as error:
            self._say("%s: %s" % (argv[0], why_not(argv[0], error)))
            return report_of(begun_at, code=127 if isinstance(error, FileNotFoundError) else 126)
        self.streams = [Stream(n, pipe, forms, self.journal) for n, pipe in enumerate(pipes)]
        self.thread = spawn(self.poster.work)
        spawn(watch, self)
        looking = spawn(watch_checkpoints, self, checkpoints) if checkpoints else None
        status = self._follow()
        self.has_ended.set()
        if looking:
            looking.join(1.0)  # a file system may hang
        if os.WIFSIGNALED(status):
            return report_of(begun_at, number=os.WTERMSIG(status), ended_at=self.ended_at)
        return report_of(begun_at, code=os.WEXITSTATUS(status), ended_at=self.ended_at)

    def deliver(self, report):
        """Bring the rest and the report to the portal for a few seconds; leave it if that fails."""
        self.folder.write("exit.json", report)
        self.poster.finish(report)
        thread = self.thread or spawn(self.poster.work)
        thread.join(DELIVER_SECONDS)
        if not thread.is_alive() and self.poster.is_delivered():
            self.folder.write("delivered", {})
            self.journal.remove()

    def _say(self, text):
        self.journal.append(1, ("slipway: %s\n" % text).encode("utf-8", "replace"), time.time())

    # Signals

    def _listen(self):
        signal.set_wakeup_fd(self.wake_end)
        numbers = [getattr(signal, "SIG" + name) for name in FORWARDED]
        for number in numbers:
            if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers + [signal.SIGCHLD])

    def _on_signal(self, number, _frame):
        self.received[number] = time.monotonic()
        if self.child is not None:
            if number == self.stop_signal:
                self.stop_signal = None  # the portal said it already
            else:
                self._signal(number)
        elif self.is_asking and number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            raise Told(number)
        else:
            self.early.append(number)

    def _signal(self, number):
        """Send it to the command's process group; after TERM the time to KILL runs."""
        with contextlib.suppress(OSError):
            os.killpg(self.child, number)
        if number == signal.SIGTERM and self.kill_at is None:
            self.kill_at = time.monotonic() + KILL_SECONDS

    def _hear(self):
        """Wake the main thread if an answer changed something for it."""
        if self.poster.stop is not None or self.settings.blocks:
            with contextlib.suppress(OSError):
                os.write(self.wake_end, b"\0")

    def _obey(self, now):
        """Begin to stop when the portal says so: its signal, its grace, then TERM."""
        stop, self.term_at = self.poster.stop, now
        if isinstance(stop.get("signal"), str):
            number = getattr(signal, "SIG" + stop["signal"], None)
            if isinstance(number, signal.Signals):
                if now - self.received.get(number, -SAME_STOP_SECONDS) >= SAME_STOP_SECONDS:
                    self._signal(number)
                    self.stop_signal = number
                with contextlib.suppress(TypeError, ValueError, KeyError):
                    self.term_at = now + max(0.0, float(stop["grace_seconds"]))

    # Secrets

    def _ask_secrets(self):
        """Return {name: value} in UTF-8, whatever the locale.

        Raises `Failed` when there will be none, `Told` on a signal.
        """
        nonce, failures = binascii.hexlify(os.urandom(16)).decode(), 0
        while True:
            try:
                body = json.dumps({"nonce": nonce}).encode()
                status, after, answer = self.portal.post("/secrets", body)
                if status == 200:
                    return {
                        name.encode(): value.encode() for name, value in answer["secrets"].items()
                    }
            except self.portal.errors + (KeyError, TypeError, AttributeError):
                status, after = 0, None
            if status == 404:
                return {}
            if status in (401, 403, 409, 410):
                raise Failed("secrets_taken" if status == 409 else "secrets_refused")
            failures += 1
            time.sleep(pause_after(failures) if after is None else min(after, 600))

    # The loop

    def _follow(self):
        """Read the pipes until the command has ended and they are empty; return its status."""
        for number in self.early:
            self._signal(number)
        for stream in self.streams:
            self.selector.register(stream.pipe, selectors.EVENT_READ, stream)
        is_reading = True
        while not self._is_over():
            for key, _events in self.selector.select(self._wait()):
                if key.data is None:
                    with contextlib.suppress(OSError):
                        os.read(self.woken, 4096)
                else:
                    self._read(key.data)
            self._tick(time.monotonic())
            wants = self.drain_until is not None or not self.journal.is_full()
            if wants != is_reading:
                is_reading = wants
                for stream in self.streams:
                    if stream.is_open and wants:
                        self.selector.register(stream.pipe, selectors.EVENT_READ, stream)
                    elif stream.is_open:
                        self.selector.unregister(stream.pipe)
        return self._end()

    def _read(self, stream):
        stream.read()
        if not stream.is_open:
            self.selector.unregister(stream.pipe)

    def _tick(self, now):
        for stream in self.streams:
            stream.flush(now)
        if self.journal.has_unsent():
            self.poster.tell()
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT  # not reaped, so that its id stays taken
        if self.drain_until is None and os.waitid(os.P_PID, self.child, flags):
            self.ended_at, self.drain_until = time.time(), now + DRAIN_SECONDS
        if self.poster.stop is not None and self.term_at is None:
            self._obey(now)
        if self.term_at is not None and self.kill_at is None and now >= self.term_at:
            self._signal(signal.SIGTERM)
        if self.kill_at is not None and now >= self.kill_at:
            kill_session(self.child)
            self.kill_at = now + 1

    def _wait(self):
        """Return seconds until the next thing is due, or `None`."""
        due = [stream.cutter.due_at for stream in self.streams] + [self.drain_until, self.kill_at]
        if self.kill_at is None:
            due.append(self.term_at)
        due = [instant for instant in due if instant is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _is_over(self):
        if self.drain_until is None:
            return False
        is_empty = not any(stream.is_open for stream in self.streams)
        return is_empty or time.monotonic() >= self.drain_until

    def _end(self):
        """Kill what is left of the session, take what it still wrote; return the status."""
        until = time.monotonic() + DRAIN_SECONDS
        while kill_session(self.child) and time.monotonic() < until:
            time.sleep(0.01)
        for stream in self.streams:
            reads = 0
            while stream.is_open and stream.read() and reads < 16:
                reads += 1
            stream.close()
        child, self.child = self.child, None  # its id may be another's soon
        return os.waitpid(child, 0)[1]


def report_of(started_at, code=None, number=None, ended_at=None, error=""):
    """Return the report on an end by itself, with a code, or by a signal."""
    times = {"started_at": started_at, "ended_at": ended_at or time.time()}
    return dict(times, code=code, signal=number, error=error)


def end_like(report):
    """End this process the way the command did."""
    number = report["signal"]
    if number:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    os._exit(128 + number if number else report["code"])


# Samples and checkpoints

PARTIAL_NAMES = (".tmp", ".partial", ".new")
DISKS = re.compile(r"(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+)\Z")
GPU_SERIES = (  # name, factor, field of nvidia-smi
    ("gpu_utilization_ratio", 0.01, "utilization.gpu"),
    ("gpu_memory_used_bytes", 1024**2, "memory.used"),
    ("gpu_memory_total_bytes", 1024**2, "memory.total"),
    ("gpu_power_watts", 1, "power.draw"),
    ("gpu_temperature_celsius", 1, "temperature.gpu"),
)


class Sampler:
    """Measures the machine and the command; rates are those since the last sample.

    What cannot be measured is absent, never 0.
    """

    def __init__(self, leader, gpus):
        self.leader = leader
        self.gpus = None if gpus is None else re.findall(r"[^,\s]+", gpus)
        self.no_tool_until = self.no_scan_until = 0.0
        self.command = (time.monotonic(), 0.0)  # when it was looked at, processor seconds by then
        self.last_at, self.last = time.monotonic(), self._counters()

    def sample(self):
        """Return {series: number}."""
        now, counters = time.monotonic(), self._counters()
        seconds = max(now - self.last_at, 0.001)
        grown = {
            name: max(0, value - self.last[name])
            for name, value in counters.items()
            if name in self.last
        }
        self.last_at, self.last = now, counters
        series = {name: grown[name] / seconds for name in grown if name.endswith("_per_second")}
        series["agent_cpu_ratio"] = grown["agent_cpu_ratio"] / seconds
        if grown.get("cpu_ticks"):
            series["cpu_utilization_ratio"] = 1 - min(1, grown["cpu_idle"] / grown["cpu_ticks"])
        if grown.get("disk_requests"):
            series["disk_latency_seconds"] = grown["disk_waited"] / grown["disk_requests"]
        for part in (self._memory, self._gpus, self._command):
            with contextlib.suppress(OSError, ValueError, LookupError):
                series.update(part())
        return {name: round(value, 6) for name, value in series.items()}

    def _counters(self):
        counters = {"agent_cpu_ratio": time.process_time()}
        for part in (self._processors, self._network, self._disks):
            with contextlib.suppress(OSError, ValueError, LookupError):
                counters.update(part())
        return counters

    @staticmethod
    def _processors():
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return {"cpu_ticks": sum(ticks), "cpu_idle": ticks[3] + ticks[4]}

    @staticmethod
    def _network():
        received = sent = 0
        with open("/proc/net/dev") as file:
            for line in file.readlines()[2:]:
                name, _, words = line.partition(":")
                if name.strip() != "lo":
                    received += int(words.split()[0])
                    sent += int(words.split()[8])
        return {"nic_receive_bytes_per_second": received, "nic_transmit_bytes_per_second": sent}

    @staticmethod
    def _disks():
        total = [0] * 8
        with open("/proc/diskstats") as file:
            for line in file:
                words = line.split()
                if DISKS.match(words[2]):
                    total = [old + int(word) for old, word in zip(total, words[3:11])]
        if not any(total):
            return {}
        return {
            "disk_read_bytes_per_second": 512 * total[2],
            "disk_write_bytes_per_second": 512 * total[6],
            "disk_requests": total[0] + total[4],
            "disk_waited": (total[3] + total[7]) / 1000,
        }

    def _command(self):
        """Add up what the command's processes and their ended children used since the last time.

        On a machine with very many processes looking costs more, and is done less often.
        """
        now = time.monotonic()
        if now < self.no_scan_until:
            return {}
        words = [word for words in session_of(self.leader).values() for word in words[TIMES]]
        self.no_scan_until = now + 500 * (time.monotonic() - now)
        used = sum(map(int, words)) / os.sysconf("SC_CLK_TCK")
        (last_at, last), self.command = self.command, (now, used)
        return {"cpu_cores_used": max(0.0, used - last) / max(now - last_at, 0.001)}

    @staticmethod
    def _memory():
        with open("/proc/meminfo") as file:
            found = dict(line.split()[:2] for line in file)
        with open("/proc/self/statm") as file:
            own = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        total, free = int(found["MemTotal:"]) * 1024, int(found["MemAvailable:"]) * 1024
        return {
            "memory_total_bytes": total,
            "memory_used_bytes": total - free,
            "agent_memory_bytes": own,
        }

    def _gpus(self):
        """Ask `nvidia-smi`; one that is missing or fails is left alone for some minutes."""
        if self.gpus == [] or time.monotonic() < self.no_tool_until:
            return {}
        folders = os.environ.get("PATH", os.defpath).split(":")
        if not any(os.access(os.path.join(folder, "nvidia-smi"), os.X_OK) for folder in folders):
            self.no_tool_until = time.monotonic() + NO_TOOL_SECONDS
            return {}
        import subprocess

        fields = ",".join(["index"] + [field for _name, _factor, field in GPU_SERIES])
        command = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
        if self.gpus and not self.gpus[0].isdigit():
            command.append("--id=" + ",".join(self.gpus))
        try:
            text = subprocess.check_output(
                command,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TOOL_SECONDS,
            ).decode()
        except (OSError, subprocess.SubprocessError):
            self.no_tool_until = time.monotonic() + FAULTY_TOOL_SECONDS
            return {}
        wanted = self.gpus if self.gpus and self.gpus[0].isdigit() else None
        return gpu_series(text, wanted)


def gpu_series(text, wanted):
    """Return {series: number} of the GPUs with a wanted index; `None` wants all."""
    series = {}
    for line in text.splitlines():
        index, _, rest = line.partition(",")
        words = rest.split(",")
        if not index.strip().isdigit() or len(words) != len(GPU_SERIES):
            continue
        if wanted is not None and index.strip() not in wanted:
            continue
        for (name, factor, _field), word in zip(GPU_SERIES, words):
            with contextlib.suppress(ValueError):  # such as [N/A]
                series['%s{gpu="%s"}' % (name, index.strip())] = float(word) * factor
    return series


class Checkpoints:
    """Looks for complete entries that appear in the checkpoint folder."""

    def __init__(self, folder):
        self.folder, self.known, self.partial = os.path.abspath(folder), {}, {}
        self.look()

    def look(self):
        """Return what is complete since the last look, in the shape of the protocol."""
        found, partial, now = [], {}, time.time()
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return []
        for entry in entries:
            with contextlib.suppress(OSError):
                stat = entry.stat(follow_symlinks=False)
                if entry.is_symlink():
                    continue
                if entry.name.startswith(".") or entry.name.endswith(PARTIAL_NAMES):
                    began_at = self.partial.get(stat.st_ino, min(now, stat.st_ctime))
                    partial[stat.st_ino] = began_at
                elif self.known.get(entry.name) != stat.st_ino:
                    self.known[entry.name] = stat.st_ino
                    found.append(self._describe(entry, stat, now))
        self.partial = partial
        return found

    def _describe(self, entry, stat, now):
        """Return the report; a rename sets the time of change, and so says when it was complete."""
        began_at = self.partial.get(stat.st_ino)
        at = stat.st_ctime if (began_at or now - 5) <= stat.st_ctime <= now else now
        seconds = None if began_at is None else round(max(0.0, at - began_at), 3)
        size = stat.st_size if entry.is_file() else size_of(entry.path)
        found = {"folder": self.folder, "name": entry.name}
        return dict(found, at=round(at, 6), seconds=seconds, bytes=size)


def size_of(folder):
    """Return the bytes of the files below a folder, of the first 10,000 entries."""
    total, counted = 0, 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            counted += 1
            if counted > ENTRIES_COUNTED:
                return total
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def watch(run):
    """Take samples for ever."""
    sampler, pause = Sampler(run.child, run.settings.gpus), 1.0  # a short job has one too
    while True:
        time.sleep(pause)
        run.poster.samples.append({"at": time.time(), "series": sampler.sample()})
        run.poster.tell()
        pause = run.poster.sample_seconds


def watch_checkpoints(run, checkpoints):
    """Report complete checkpoints until the command has ended; the file is for the courier."""
    is_over, pause = False, 1.0
    while not is_over:
        is_over, begun = run.has_ended.wait(pause), time.process_time()
        for found in checkpoints.look():
            run.folder.add("checkpoints", found)
            run.poster.checkpoints.append(found)
            run.poster.tell()
        pause = max(1.0, 200 * (time.process_time() - begun))  # a large folder is looked at less


def spawn(work, *arguments):
    """Do the work in a thread; a fault there is told and must not end the command."""

    def guarded():
        while True:
            try:
                return work(*arguments)
            except Exception as error:
                complain("%s: %r" % (work.__name__, error))
                time.sleep(5)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


# The folder, and the two verbs


class Folder:
    """The folder of one run: `lock`, `agent.json`, `spool/`, `exit.json`, then `delivered`."""

    def __init__(self, name):
        self.name = name
        os.makedirs(name, 0o700, exist_ok=True)
        os.chmod(name, 0o700)
        self.file = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT, 0o600)

    def path(self, name):
        """Return the path of something in it."""
        return os.path.join(self.name, name)

    def lock(self, seconds):
        """Wait for the lock, which this process then keeps to its end; return whether it came."""
        until = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > until:
                    return False
                time.sleep(0.1)
            else:
                return True

    def read(self, name):
        """Return what was written under that name, or `None`."""
        try:
            with open(self.path(name)) as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def add(self, name, value):
        """Add a line to a file of values, if the disk has room."""
        with contextlib.suppress(OSError), open(self.path(name), "a") as file:
            file.write(json.dumps(value) + "\n")

    def read_all(self, name):
        """Return the values that were added under that name."""
        values = []
        with contextlib.suppress(OSError, ValueError), open(self.path(name)) as file:
            for line in file:
                values.append(json.loads(line))
        return values

    def reserve(self, name):
        """Take the room for a value now, lest the disk be full later."""
        with contextlib.suppress(OSError), open(self.path(name + ".new"), "w") as file:
            file.write(" " * 512)

    def write(self, name, value):
        """Write it whole or not at all; a full disk must not stop the command."""
        try:
            new = os.open(self.path(name + ".new"), os.O_WRONLY | os.O_CREAT, 0o600)
            with open(new, "w") as file:
                json.dump(value, file)
                file.truncate()
                os.fsync(new)
            os.rename(self.path(name + ".new"), self.path(name))
        except OSError as error:
            complain("%s: %s" % (self.path(name), error))


def why_not(program, error):
    """Return in words why a program cannot start."""
    if isinstance(error, FileNotFoundError) and "/" in program and os.path.exists(program):
        return "the interpreter that its first line names after #! is not here"
    return getattr(error, "strerror", None) or error


def complain(text):
    """Say what is wrong where the scheduler keeps it."""
    with contextlib.suppress(OSError):
        os.write(2, ("slipway agent: %s\n" % text).encode("utf-8", "replace"))


def run(settings, argv):
    """Run the command, deliver, and end the way it did."""
    folder = Folder(settings.folder)
    if folder.read("agent.json") is not None or not folder.lock(LOCK_SECONDS):
        complain("%s was used before; each run needs a folder of its own." % folder.name)
        return OWN_FAILURE
    own = Run(settings, folder)
    report = own.go(argv)
    own.deliver(report)
    return end_like(report)


def deliver(settings, name):
    """Deliver what an agent left in that folder, for up to an hour; return 0 when all is done."""
    until = time.monotonic() + COURIER_SECONDS
    if not os.path.isdir(name):
        complain("There is no %s." % name)
        return 1
    folder = Folder(name)
    if not folder.lock(COURIER_SECONDS):
        return 1
    if folder.read("delivered") is not None:
        return 0
    identity = folder.read("agent.json")
    if identity is None:
        complain("%s holds nothing of an agent." % name)
        return 0
    journal = Journal.recover(folder.path("spool"))
    poster = Poster(journal, Portal(settings.url, settings.token), identity)
    poster.checkpoints = folder.read_all("checkpoints")
    poster.finish(folder.read("exit.json"))
    poster.work(until)
    if poster.is_refused or not poster.is_delivered():
        return 1
    folder.write("delivered", {})
    journal.remove()
    return 0


def main(words):
    """Do what the words say."""
    libc().prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the job must not read what is in our memory
    settings = Settings(os.environ)
    if words[:2] == ["run", "--"] and words[2:] and settings.url and settings.folder:
        return run(settings, words[2:])
    if words[:1] == ["deliver"] and len(words) == 2 and settings.url:
        return deliver(settings, words[1])
    complain(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
