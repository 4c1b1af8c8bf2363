"""The guard of outgoing HTTP: no notation of a refused address gets through."""

import socket
import threading
import time
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.addresses import METADATA, refusal
from portal.core.errors import Refused, Unavailable
from portal.core.http import Guard
from tests.doubles.receiver import certificate, receiver

PUBLIC = "93.184.216.34"
METADATA_V4 = "169.254.169.254"


def guard(*answers: str, **options) -> Guard:
    """A guard whose resolver gives the answers one after the other, and fails after the last."""
    left = list(answers)
    return Guard(resolver=lambda _host, _port: left.pop(0).split(), **options)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://[fd20:ce::254]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::169.254.169.254]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[2001:0:a9fe:a9fe::1]/",
        "http://[fe80::5efe:169.254.169.254]/",
        "http://[fe80::1]/",
        "http://[fe80::1%25eth0]/",
        "http://169.254.1.1/",
        "http://224.0.0.1/",
        "http://[ff02::1]/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://0.1.2.3/",
        "http://255.255.255.255/",
        "http://169.254.169.254./",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0xA9.0xFE.0xA9.0xFE/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://169.254.169.0254/",
        "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/",
        "http://1\uff169.254.169.254/",
    ],
)
def test_refused_in_every_notation_even_where_private_is_allowed(url):
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    with pytest.raises(Refused) as refused:
        Guard(allow_private=True, allowed_networks=everything).check(url)
    assert refused.value.code == "address_refused"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://example.com/",
        "ftp://example.com/",
        "//example.com/",
        "example.com",
        "http:example.com",
        "http:///path",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://169.254.169.254@example.com/",
        "http://example.com\\@169.254.169.254/",
        "http://exa mple.com/",
        "http://example.com/a\nb",
        "http://example.com\t/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:http/",
        "http://example%2ecom/",
        "http://example..com/",
        "http://.example.com/",
        "http://[::1/",
        "http://[v1.x]/",
        "http://example.com/" + "a" * 3000,
        "",
    ],
)
def test_malformed_or_foreign_urls_are_refused_before_any_look_up(url):
    with pytest.raises(Refused):
        guard().check(url)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "100.64.0.1",
        "[::1]",
        "[fd12::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
    ],
)
def test_private_addresses_only_when_allowed(address):
    url = f"http://{address}:9000/"
    with pytest.raises(Refused, match="private or loopback"):
        Guard().check(url)
    assert Guard(allow_private=True).check(url).port == 9000


def test_allowed_networks_open_what_they_contain():
    limited = Guard(allowed_networks=(ip_network("10.20.0.0/16"),))
    assert str(limited.check("https://10.20.3.4/x").ip) == "10.20.3.4"
    with pytest.raises(Refused):
        limited.check("https://10.21.3.4/x")
    with pytest.raises(Refused):
        limited.check("https://[::1]/x")


@pytest.mark.parametrize(
    ("url", "host", "authority"),
    [
        ("HTTPS://EXAMPLE.com/A?b=C#d", "example.com", "example.com"),
        ("https://example.com.:443/", "example.com", "example.com"),
        ("https://example.com:8443/", "example.com", "example.com:8443"),
        ("https://bücher.example/", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("https://[2606:2800:220:1::1]:8443/", "2606:2800:220:1::1", "[2606:2800:220:1::1]:8443"),
    ],
)
def test_names_are_brought_to_one_form(url, host, authority):
    target = guard(PUBLIC).check(url)
    assert (target.host, target.authority) == (host, authority)


def test_every_address_of_a_name_must_be_allowed():
    with pytest.raises(Refused):
        guard(f"{PUBLIC} {METADATA_V4}").check("https://example.com/")
    with pytest.raises(Refused):
        guard(f"{PUBLIC} ::1").check("https://example.com/")


def test_unknown_names_are_unavailable_and_not_refused():
    def fails(_host, _port):
        raise socket.gaierror("Name or service not known")

    with pytest.raises(Unavailable, match="does not resolve"):
        Guard(resolver=fails).check("https://nowhere.example/")
    with pytest.raises(Unavailable):
        guard("").check("https://nowhere.example/")


def test_the_portals_own_listeners_are_refused_under_every_address():
    listeners = (("0.0.0.0", 8000), ("slipway.example", 443))  # noqa: S104 - nothing listens
    own = Guard(allow_private=True, own_listeners=listeners)
    for url in (
        "http://127.0.0.1:8000/",
        "http://127.0.0.2:8000/",
        "http://[::ffff:127.0.0.1]:8000/",
    ):
        with pytest.raises(Refused, match="the portal itself"):
            own.check(url)
    assert own.check("http://127.0.0.1:8001/").port == 8001
    with pytest.raises(Refused, match="the portal itself"):
        guard(PUBLIC, own_listeners=listeners).check("https://SLIPWAY.example/")


def test_rebinding_does_not_move_the_connection():
    with receiver() as server:
        rebinding = guard("127.0.0.1", METADATA_V4, allow_private=True)
        answer = rebinding.request("GET", f"http://rebind.example:{server.port}/x?y=1")
        assert (answer.status, answer.body) == (200, b"ok")
        assert server.got[0].path == "/x?y=1"
        assert server.got[0].headers["host"] == f"rebind.example:{server.port}"
        with pytest.raises(Refused):  # the second answer is judged as well, at the next request
            rebinding.request("GET", f"http://rebind.example:{server.port}/")
        assert len(server.got) == 1


def test_redirects_are_answers():
    with receiver() as server:
        server.answer = lambda _got: (302, {"Location": f"http://{METADATA_V4}/"}, b"")
        answer = Guard(allow_private=True).request("GET", server.url)
        assert answer.status == 302
        assert answer.headers["location"] == f"http://{METADATA_V4}/"
        assert len(server.got) == 1


def test_body_and_headers_are_sent():
    with receiver() as server:
        Guard(allow_private=True).request(
            "POST", server.url, headers={"Content-Type": "application/json"}, content=b"{}"
        )
        Guard(allow_private=True).request("POST", server.url)
    first, second = server.got
    assert (first.body, first.headers["content-type"]) == (b"{}", "application/json")
    assert second.headers["content-length"] == "0"


def test_tls_keeps_the_name_for_sni_and_certificate(tmp_path):
    context, trusting = certificate(tmp_path, "hooks.example")
    with receiver(context=context) as server:
        trusted = guard("127.0.0.1", "127.0.0.1", allow_private=True, ssl_context=trusting)
        assert trusted.request("GET", f"https://hooks.example:{server.port}/").status == 200
        assert server.sni == ["hooks.example"]
        with pytest.raises(Unavailable, match="certificate"):
            trusted.request("GET", f"https://other.example:{server.port}/")
        with pytest.raises(Unavailable, match="certificate"):
            guard("127.0.0.1", allow_private=True).request(
                "GET", f"https://hooks.example:{server.port}/"
            )
    assert len(server.got) == 1


def test_the_next_address_is_tried_when_one_does_not_answer():
    with receiver() as server:
        two = guard("127.0.0.9 127.0.0.1", allow_private=True)
        assert two.request("GET", f"http://two.example:{server.port}/").status == 200


def test_large_bodies_are_cut():
    with receiver() as server:
        server.answer = lambda _got: (200, {}, b"x" * 300_000)
        answer = Guard(allow_private=True).request("GET", server.url, max_bytes=1000)
        assert (len(answer.body), answer.is_complete) == (1000, False)


@pytest.mark.parametrize(
    ("head", "is_answer"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nX: ", False),
    ],
)
def test_a_dripping_server_is_left_at_the_deadline(head, is_answer):
    """Takes its deadline of 0.4 s: each byte comes in time, the whole never would."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        client, _ = listener.accept()
        with client:
            client.sendall(head)
            while not stop.wait(0.05):
                try:
                    client.sendall(b"x")
                except OSError:
                    return

    threading.Thread(target=drip, daemon=True).start()
    port = listener.getsockname()[1]
    began = time.monotonic()
    try:
        answer = Guard(allow_private=True).request("GET", f"http://127.0.0.1:{port}/", timeout=0.4)
        assert is_answer
        assert not answer.is_complete
    except Unavailable:
        assert not is_answer
    finally:
        stop.set()
        listener.close()
    assert time.monotonic() - began < 2


def test_a_closed_port_is_unavailable_with_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unavailable, match="did not answer") as raised:
        Guard(allow_private=True).request("GET", f"http://127.0.0.1:{port}/")
    assert raised.value.code == "unreachable"


@given(st.ip_addresses(v=4))
def test_ipv6_forms_are_never_more_allowed_than_the_address_inside(inner):
    number = int(inner)
    forms = [
        f"::ffff:{inner}",
        f"64:ff9b::{inner}",
        str(ip_address((0x2002 << 112) | (number << 80))),
    ]
    if refusal(inner, allow_private=False):
        for form in forms:
            assert refusal(ip_address(form), allow_private=False), form


@given(st.text(max_size=80))
def test_any_text_is_refused_or_a_target(text):
    try:
        target = guard(PUBLIC).check(f"http://{text}")
    except Refused:
        return
    except Unavailable:
        raise AssertionError(text) from None
    assert target.ip not in METADATA
