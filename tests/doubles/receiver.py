"""A real HTTP or HTTPS server on loopback that keeps what it got and answers as told."""

import datetime
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Got:
    method: str
    path: str
    headers: dict[str, str]
    """Lower-case name → value."""
    body: bytes


@dataclass
class Receiver:
    """`answer` decides on status, headers and body; it may also take its time."""

    port: int = 0
    scheme: str = "http"
    got: list[Got] = field(default_factory=list)
    sni: list[str | None] = field(default_factory=list)
    answer: Callable[[Got], tuple[int, dict[str, str], bytes]] = lambda _got: (200, {}, b"ok")

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"


@contextmanager
def receiver(*, context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    double = Receiver(scheme="https" if context else "http")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Got(self.command, self.path, headers, body)
            double.got.append(got)
            status, extra, answer = double.answer(got)
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = _take  # noqa: N815 - names of http.server

        def log_message(self, *_args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_args: object) -> None:
            pass  # a client that went away is what some tests are about

    server = Server(("127.0.0.1", 0), Handler)
    if context:
        context.sni_callback = lambda _socket, name, _context: double.sni.append(name)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    double.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()


def certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a self-signed certificate; returns the contexts of a server and of who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    today = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today)
        .not_valid_after(today + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "cert.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain, private)
    return server, ssl.create_default_context(cafile=str(chain))


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
