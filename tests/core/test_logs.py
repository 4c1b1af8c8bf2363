"""Log lines carry facts as fields and never a secret."""

import json
import logging
from io import StringIO

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from portal.core import crypto, logs
from portal.core.redaction import MASK, is_secret_name, redact

SECRET = "Zq7w9-Planted_Secret-f3K"
IN_TEXT = [
    f"slw_{SECRET}",
    f"whsec_{SECRET}",
    f"Bearer {SECRET}",
    f"Authorization: Basic {SECRET}",
    f"authorization: {SECRET}",
    f"'Authorization': 'Bearer {SECRET}'",
    f"https://user:{SECRET}@example.com/",
    f"postgresql://slipway:{SECRET}@db/slipway",
    f"redis://:{SECRET}@cache:6379/0",
    f"https://example.com/?api_key={SECRET}&x=1",
    f"password={SECRET}",
    f"SLIPWAY_TOKEN={SECRET}",
    f'{{"client_secret": "{SECRET}"}}',
    f"Cookie: sessionid={SECRET}",
    f"aws_secret_access_key = {SECRET}",
    f"https://hooks.slack.com/services/T0/B0/{SECRET}",
    f"GET /invite/{SECRET}",
    f"https://slipway.example/account/password/reset/key/1-{SECRET}/",
    f"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{SECRET}",
]
SECRET_NAMES = [
    "password", "api_token", "Authorization", "set-cookie", "SECRET", "aws_secret_access_key",
    "privateKey", "key", "signing_key", "credentials", "jwt", "slack_token",
]  # fmt: skip
HARMLESS_NAMES = [
    "user", "job", "token_id", "secret_name", "token_prefix", "credential_id", "tokens_count",
    "routing_key",
]  # fmt: skip


@pytest.fixture(scope="module", params=["json", "console"])
def line(request):
    """Log through the real configuration and return what a terminal would show."""
    kept = logging.getLogger().handlers[:], logging.getLogger().level
    logs.configure(log_format=request.param, level="DEBUG")
    stream = StringIO()
    handler = logging.getLogger().handlers[0]
    handler.setStream(stream)

    def write(message, *args, name="portal.test", level=logging.INFO, **options) -> str:
        stream.seek(0)
        stream.truncate()
        logging.getLogger(name).log(level, message, *args, **options)
        return stream.getvalue()

    write.format = request.param
    yield write
    logging.getLogger().handlers, logging.getLogger().level = kept


def test_facts_are_fields(line):
    structlog.contextvars.bind_contextvars(request_id="req-1", user_id="01J")
    try:
        text = line("job submitted", extra={"job": "01JOB", "nodes": 4, "bare": None})
        assert logs.request_id() == "req-1"
    finally:
        structlog.contextvars.clear_contextvars()
    assert logs.request_id() == ""
    assert text.count("\n") == 1
    if line.format == "console":
        assert "job submitted" in text
        assert "job=01JOB" in text
        return
    fields = json.loads(text)
    assert fields["message"] == "job submitted"
    assert fields["level"] == "info"
    assert fields["logger"] == "portal.test"
    assert fields["at"].endswith("Z")
    assert (fields["job"], fields["nodes"], fields["bare"]) == ("01JOB", 4, None)
    assert (fields["request_id"], fields["user_id"]) == ("req-1", "01J")


@pytest.mark.parametrize("text", IN_TEXT)
def test_a_secret_in_any_text_is_masked(line, text):
    try:
        raise ValueError(f"could not use {text}")
    except ValueError:
        shown = [
            line(f"calling {text}"),
            line("calling %s", text),
            line("called", extra={"facts": {"list": [text, {"deep": text}]}}),
            line("called", extra={"object": Exception(text)}),
            line("failed", level=logging.ERROR, exc_info=True),
        ]
    for written in shown:
        assert SECRET not in written
        assert MASK in written


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_under_a_telling_name_is_masked(line, name):
    assert is_secret_name(name)
    for extra in ({name: SECRET}, {"facts": {name: [SECRET]}}, {"facts": [{name: SECRET}]}):
        assert SECRET not in line("called", extra=extra)
    assert redact({name: None, "n": {name: True}}) == {name: None, "n": {name: True}}


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_what_only_names_a_secret_stays_readable(line, name):
    assert not is_secret_name(name)
    assert "readable" in line("called", extra={name: "readable"})


def test_ordinary_lines_stay_as_they_are(line):
    text = "job 01JABC on https://example.com/a?b=c took 3 s; basic training, 2 of 4 nodes"
    assert text in line(text)


@given(
    st.sampled_from(SECRET_NAMES),
    st.recursive(
        st.just(SECRET) | st.just(crypto.Secret(SECRET)) | st.sampled_from(IN_TEXT),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=3)
            | st.tuples(inner)
        ),
        max_leaves=8,
    ),
)
def test_nothing_planted_under_a_telling_name_gets_out(line, name, planted):
    assert SECRET not in line("called", extra={name: planted, "facts": {"x": {name: planted}}})


@given(st.text(max_size=200), st.sampled_from(IN_TEXT), st.text(max_size=200))
def test_nothing_planted_between_other_words_gets_out(line, before, planted, after):
    assert SECRET not in line(f"{before} {planted} {after}")


def test_a_fact_that_cannot_speak_does_not_break_the_line(line):
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("no")

    deep: list = []
    deep.append(deep)
    assert "<Mute>" in line("called", extra={"fact": Mute(), "deep": deep, "raw": b"\xff"})


def test_long_texts_are_cut(line):
    assert len(line("x" * 1_000_000)) < 30_000


@pytest.mark.parametrize(
    ("event", "request_line", "kept"),
    [
        ("request_started", "GET /me", False),
        ("request_finished", "GET /me", True),
        ("request_finished", "GET /readyz", False),
    ],
)
def test_a_request_is_one_line_and_a_probe_none(event, request_line, kept) -> None:
    record = logging.makeLogRecord(
        {"msg": {"event": event, "request": request_line}, "levelno": logging.INFO}
    )
    assert logs.OneLine().filter(record) is kept
