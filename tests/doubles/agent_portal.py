"""The portal as the node agent sees it: a real HTTP server that counts as docs/agent.md says.

`behave` decides for each post how the double misbehaves; `None` means that it does not.
"""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CUT, LOSE, STALL = "cut", "lose", "stall"
"""Close without reading on; take the post but lose the answer; answer only when released."""


@dataclass
class AgentPortal:
    """`stdout` and `stderr` are what has arrived; a gap in them is the text `<gap N>`."""

    port: int = 0
    token: str = "slx-token"
    secrets: dict[str, str] | None = None
    secrets_status: int = 200
    flush_after_ms: int = 50
    stop: dict | None = None
    behave: Callable[[dict], int | str | None] = lambda _post: None
    retry_after: str = ""
    posts: list[dict] = field(default_factory=list)
    taken: list[tuple[str, bytes]] = field(default_factory=list)
    """(stream, bytes) in the order of arrival."""
    acked: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    samples: dict[float, dict] = field(default_factory=dict)
    checkpoints: dict[str, dict] = field(default_factory=dict)
    exits: list[dict] = field(default_factory=list)
    nonces: set[str] = field(default_factory=set)
    sizes: list[int] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def stdout(self) -> bytes:
        return b"".join(data for stream, data in self.taken if stream == "stdout")

    @property
    def stderr(self) -> bytes:
        return b"".join(data for stream, data in self.taken if stream == "stderr")

    @property
    def exit(self) -> dict | None:
        return self.exits[-1] if self.exits else None

    def answer(self, path: str, token: str, body: bytes) -> tuple[int | str, dict]:
        """Return a status, or how to misbehave, and the answer."""
        value = json.loads(body)
        if token != f"Bearer {self.token}":
            return 401, {}
        with self.lock:
            if path.endswith("/secrets"):
                return self._answer_secrets(value)
            fault = self.behave(value)
            if isinstance(fault, int) or fault == CUT:
                return fault, {}
            self.sizes.append(len(body))
            self._take(value)
            answer = {
                "acked": dict(self.acked),
                "flush_after_ms": self.flush_after_ms,
                "stop": self.stop,
                "sample_every_seconds": 1,
            }
            return fault or 200, answer

    def _answer_secrets(self, value: dict) -> tuple[int, dict]:
        self.nonces.add(value["nonce"])
        if self.secrets is None:
            return 404, {}
        if self.secrets_status != 200 or len(self.nonces) > 1:
            return max(self.secrets_status, 409), {}
        return 200, {"secrets": self.secrets}

    def _take(self, post: dict) -> None:
        self.posts.append(post)
        for chunk in post["chunks"]:
            stream, acked = chunk["stream"], self.acked[chunk["stream"]]
            length = chunk.get("gap") or len(base64.b64decode(chunk["data"]))
            skip = acked - chunk["offset"]
            if skip < 0 or skip >= length:
                continue  # beyond what there is, or all there already
            if "gap" in chunk:
                data = b"<gap %d>" % (length - skip)
            else:
                data = base64.b64decode(chunk["data"], validate=True)[skip:]
            self.taken.append((stream, data))
            self.acked[stream] += length - skip
        self.samples |= {sample["at"]: sample["series"] for sample in post["samples"]}
        self.checkpoints |= {found["name"]: found for found in post["checkpoints"]}
        if post["exit"] is not None:
            self.exits.append(post["exit"])


@contextmanager
def agent_portal(*, port: int = 0, **knobs: object) -> Iterator[AgentPortal]:
    double = AgentPortal(**knobs)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # it would add 40 ms to each answer

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            token = self.headers.get("Authorization", "")
            assert self.path.startswith("/api/agent/v1/")
            status, answer = double.answer(self.path, token, body)
            if status == STALL:
                double.released.wait(60)
                status = 200
            if status in (CUT, LOSE):
                self.close_connection = True
                return
            text = json.dumps(answer).encode()
            self.send_response(status)
            if double.retry_after:
                self.send_header("Retry-After", double.retry_after)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_args: object) -> None:
            pass  # an agent that is killed is what some tests are about

    server = Server(("127.0.0.1", port), Handler)
    double.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.released.set()
        server.shutdown()
        server.server_close()
