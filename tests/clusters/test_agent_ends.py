"""How a run under the node agent ends: codes, signals, kills, what is left behind; and secrets."""

import base64
import json
import os
import signal
import time
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.clusters.agents import (
    deliver,
    is_alive,
    run,
    run_python,
    run_shell,
    spool_of,
    wait_for,
)
from tests.doubles.agent_portal import agent_portal

SECRET = "pa/ss+wörd =&%\u0001x"
FOREVER = "import time\nwhile True: time.sleep(60)"


@pytest.fixture
def portal():
    with agent_portal() as double:
        yield double


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_it_ends_with_the_code_of_the_command(portal, tmp_path, code) -> None:
    assert run_shell(portal, tmp_path / "job", f"exit {code}").ended() == code
    assert (portal.exit["code"], portal.exit["signal"]) == (code, None)


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM", "ABRT", "USR1", "PIPE"])
def test_it_ends_by_the_signal_of_the_command(portal, tmp_path, name) -> None:
    number = int(signal.Signals[f"SIG{name}"])
    assert run_shell(portal, tmp_path / "job", f"echo x; kill -{name} $$").ended() == -number
    assert (portal.exit["code"], portal.exit["signal"]) == (None, number)
    assert portal.stdout == b"x\n"


def test_a_command_that_cannot_run_says_why(portal, tmp_path) -> None:
    assert run(portal, tmp_path / "1", "no-such-command").ended() == 127
    assert b"no-such-command: No such file or directory" in portal.stderr
    portal.acked["stderr"] = 0
    assert run(portal, tmp_path / "2", "/etc/passwd").ended() == 126
    assert b"/etc/passwd: Permission denied" in portal.stderr
    assert portal.exit["code"] == 126


def test_a_script_without_its_interpreter_says_so(portal, tmp_path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o700)
    assert run(portal, tmp_path / "1", str(script)).ended() == 127
    assert b"script: the interpreter that its first line names after #! is not here" in (
        portal.stderr
    )


@pytest.mark.parametrize("name", ["INT", "HUP", "USR1", "USR2"])
def test_signals_reach_the_process_group_once(portal, tmp_path, name) -> None:
    source = f"""
import os, signal, sys, time
def got(number, frame):
    print(os.getpid() == os.getpgid(0), number, flush=True)
signal.signal(signal.SIG{name}, got)
if os.fork() == 0:
    print("child", flush=True)
print("ready", flush=True)
end = time.monotonic() + 0.7
while time.monotonic() < end: time.sleep(0.05)
"""
    agent = run_python(portal, tmp_path / "job", source)
    wait_for(lambda: portal.stdout.count(b"ready") == 2)
    os.kill(agent.pid, signal.Signals[f"SIG{name}"])
    assert agent.ended() == 0
    number = b"%d" % signal.Signals[f"SIG{name}"]
    assert portal.stdout.count(b"True " + number) == 1
    assert portal.stdout.count(b"False " + number) == 1


def test_term_lets_the_command_end_by_itself(portal, tmp_path) -> None:
    script = "trap 'echo saving; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    agent = run_shell(portal, tmp_path / "job", script)
    wait_for(lambda: b"ready" in portal.stdout)
    os.kill(agent.pid, signal.SIGTERM)
    assert agent.ended() == 9
    assert portal.stdout == b"ready\nsaving\n"


@pytest.mark.slow
def test_a_command_that_ignores_term_is_killed(portal, tmp_path) -> None:
    """Buys the 8 s between TERM and KILL."""
    script = "trap '' TERM; sh -c 'echo $$; sleep 300' & echo ready; while :; do sleep 1; done"
    agent = run_shell(portal, tmp_path / "job", script)
    wait_for(lambda: portal.stdout.count(b"\n") == 2)
    begun = time.monotonic()
    os.kill(agent.pid, signal.SIGTERM)
    assert agent.ended() == -9
    assert 7.5 < time.monotonic() - begun < 10
    child = int(next(line for line in portal.stdout.splitlines() if line.isdigit()))
    wait_for(lambda: not is_alive(child))


def test_what_the_portal_stops_gets_signal_grace_and_term(portal, tmp_path) -> None:
    source = """
import signal, time
signal.signal(signal.SIGUSR1, lambda *_: print("checkpoint", time.time(), flush=True))
def end(*_):
    print("term", time.time(), flush=True)
    raise SystemExit(5)
signal.signal(signal.SIGTERM, end)
print("ready", 0, flush=True)
while True: time.sleep(1)
"""
    agent = run_python(portal, tmp_path / "job", source)
    wait_for(lambda: b"ready" in portal.stdout)
    portal.stop = {"signal": "USR1", "grace_seconds": 1}
    assert agent.ended() == 5
    words = portal.stdout.split()
    assert words[0::2] == [b"ready", b"checkpoint", b"term"]
    assert 0.9 < float(words[5]) - float(words[3]) < 2


def test_a_stop_without_a_signal_is_term(portal, tmp_path) -> None:
    portal.stop = {"signal": None, "grace_seconds": 30}
    assert run_python(portal, tmp_path / "job", FOREVER).ended() == -15


def test_what_is_left_of_the_session_is_killed(portal, tmp_path) -> None:
    """Buys the 2 s for pipes that outlive the command."""
    script = "sleep 300 & echo $!; setsid sleep 30 & echo $!; exit 3"
    begun = time.monotonic()
    assert run_shell(portal, tmp_path / "job", script).ended() == 3
    assert time.monotonic() - begun < 5
    left, away = map(int, portal.stdout.split())
    assert not is_alive(left)
    assert is_alive(away)  # it is the scheduler's to find
    os.kill(away, signal.SIGKILL)


def test_a_background_writer_is_heard_to_its_end(portal, tmp_path) -> None:
    script = "(sleep 0.5; echo late) & echo early"
    assert run_shell(portal, tmp_path / "job", script).ended() == 0
    assert portal.stdout == b"early\nlate\n"


@pytest.mark.kills
def test_a_killed_agent_takes_the_command_along_and_a_courier_delivers(portal, tmp_path) -> None:
    portal.behave = lambda _post: 500
    source = f"""
import os, time
open("{tmp_path}/pid", "w").write(str(os.getpid()))
for n in range(10_000): print("line", n)
print(flush=True)
while True: time.sleep(1)
"""
    agent = run_python(portal, tmp_path / "job", source)
    wait_for(lambda: b"line 9999\n" in spool_of(tmp_path / "job"))
    courier = deliver(portal, tmp_path / "job")
    os.kill(agent.pid, signal.SIGKILL)
    portal.behave = lambda _post: None
    assert courier.ended() == 0
    assert portal.stdout == b"".join(b"line %d\n" % n for n in range(10_000)) + b"\n"
    assert portal.exit is None
    wait_for(lambda: not is_alive(int((tmp_path / "pid").read_text())))


@pytest.mark.kills
def test_a_broken_tail_of_the_spool_is_passed_over(portal, tmp_path) -> None:
    portal.behave = lambda _post: 500
    agent = run_shell(portal, tmp_path / "job", "echo whole; sleep 0.3; echo cut; sleep 300")
    wait_for(lambda: b"cut\n" in spool_of(tmp_path / "job"))
    os.kill(agent.pid, signal.SIGKILL)
    agent.ended()
    part = next((tmp_path / "job" / "spool").iterdir())
    part.write_bytes(part.read_bytes()[:-2])
    portal.behave = lambda _post: None
    assert deliver(portal, tmp_path / "job").ended() == 0
    assert portal.stdout == b"whole\n"


def test_a_courier_waits_for_a_living_agent(portal, tmp_path) -> None:
    agent = run_shell(portal, tmp_path / "job", "echo x; sleep 1")
    wait_for(lambda: b"x" in portal.stdout)
    courier = deliver(portal, tmp_path / "job")
    assert agent.ended() == 0
    assert courier.ended() == 0
    assert portal.stdout == b"x\n"
    assert len({post["agent"]["boot"] for post in portal.posts}) == 1


# Secrets


def forms(secret: str) -> list[str]:
    """Every form that is promised, and texts around it at each place in base64."""
    raw = secret.encode()
    within = [base64.b64encode(b"x" * n + raw + b"yz").decode() for n in range(3)]
    safe = [base64.urlsafe_b64encode(b"x" * n + raw + b"yz").decode() for n in range(3)]
    return [secret, quote(secret), quote(secret, safe=""), quote_plus(secret), *within, *safe]


def test_secrets_reach_the_command_and_nobody_else(portal, tmp_path) -> None:
    portal.secrets = {"API_KEY": SECRET, "SHORT": "abc"}
    source = f"""
import os, sys
key = os.environ["API_KEY"]
assert key == {SECRET!r}, key
assert os.environ["SHORT"] == "abc"
for number in (os.getpid(), os.getppid()):
    open("{tmp_path}/" + str(number == os.getpid()), "wb").write(
        open("/proc/%d/environ" % number, "rb").read() if os.geteuid() == 0 or
        number == os.getpid() else b"")
print("SHORT is", os.environ["SHORT"])
sys.stdin.read()
"""
    agent = run_python(portal, tmp_path / "job", source, SLIPWAY_AGENT_SECRETS="1")
    assert agent.ended() == 0, portal.stderr
    assert portal.stdout == b"SHORT is abc\n"
    agents_own = (tmp_path / "False").read_bytes()
    assert SECRET.encode() not in agents_own
    assert portal.token.encode() not in agents_own
    assert portal.token.encode() not in (tmp_path / "True").read_bytes()
    assert SECRET.encode() in (tmp_path / "True").read_bytes()


def test_secrets_are_redacted_in_all_forms_across_all_borders(portal, tmp_path) -> None:
    portal.secrets = {"API_KEY": SECRET}
    portal.behave = lambda _post: 500
    texts = tmp_path / "texts"
    texts.write_text(json.dumps(forms(SECRET)))
    source = f"""
import json, os, sys, time
for text in json.load(open("{texts}")):
    for size in (1, 7, 1000):
        data = b"<" + text.encode() + b">\\n"
        for begin in range(0, len(data), size):
            os.write(1, data[begin : begin + size])
            os.write(2, data[begin : begin + size])
            time.sleep(0.0005)
"""
    agent = run_python(portal, tmp_path / "job", source, SLIPWAY_AGENT_SECRETS="1")
    wait_for(lambda: (tmp_path / "job" / "exit.json").exists())
    spool = spool_of(tmp_path / "job")
    portal.behave = lambda _post: None
    agent.ended()
    deliver(portal, tmp_path / "job").ended()
    lines = portal.stdout.decode().splitlines()
    assert portal.stderr == portal.stdout
    assert len(lines) == len(forms(SECRET)) * 3
    assert all("••••" in line for line in lines)
    for form in forms(SECRET):
        middle = form.encode()[len(form) // 4 : -len(form) // 4]
        assert middle not in spool
        assert middle not in portal.stdout


def test_secrets_asked_for_again_are_the_same_agents(portal, tmp_path) -> None:
    portal.secrets = {"A": "value"}
    answers = iter([500, 503])
    answer = portal.answer

    def refuse_first(path, token, body):
        status, text = answer(path, token, body)
        if path.endswith("/secrets"):
            return next(answers, status), text
        return status, text

    portal.answer = refuse_first
    agent = run_shell(portal, tmp_path / "job", 'test "$A" = value', SLIPWAY_AGENT_SECRETS="1")
    assert agent.ended() == 0
    assert len(portal.nonces) == 1


@pytest.mark.parametrize(("status", "error"), [(409, "secrets_taken"), (403, "secrets_refused")])
def test_without_its_secrets_the_command_does_not_start(portal, tmp_path, status, error) -> None:
    portal.secrets, portal.secrets_status = {"A": "value"}, 409
    if status == 403:
        answer = portal.answer
        portal.answer = lambda path, token, body: (
            (403, {}) if path.endswith("/secrets") else answer(path, token, body)
        )
    script = f"touch {tmp_path}/started"
    agent = run_shell(portal, tmp_path / "job", script, SLIPWAY_AGENT_SECRETS="1")
    assert agent.ended() == 125
    assert not (tmp_path / "started").exists()
    assert portal.exit["error"] == error
    assert error.encode() in portal.stderr


def test_none_are_none(portal, tmp_path) -> None:
    assert run_shell(portal, tmp_path / "job", "exit 0", SLIPWAY_AGENT_SECRETS="1").ended() == 0


def test_term_while_secrets_are_asked_for(portal, tmp_path) -> None:
    """Buys the 5 s of a delivery that fails."""
    portal.answer = lambda *_words: ("stall", {})
    agent = run_shell(portal, tmp_path / "job", "exit 0", SLIPWAY_AGENT_SECRETS="1")
    wait_for(lambda: (tmp_path / "job" / "agent.json").exists())
    wait_for(lambda: signal_is_caught(agent.pid, signal.SIGTERM))
    os.kill(agent.pid, signal.SIGTERM)
    assert agent.ended(seconds=10) == -15
    report = json.loads((tmp_path / "job" / "exit.json").read_text())
    assert (report["signal"], report["code"]) == (15, None)


def signal_is_caught(pid: int, number: int) -> bool:
    text = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in text.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
