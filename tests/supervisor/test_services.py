"""The embedded PostgreSQL and Valkey: real ones, started by the command that the tests use."""

import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.supervisor.processes import Supervisor, alive, faketime, running, until

COMMAND = [sys.executable, "-P", "-m", "portal.supervisor", "services"]


@contextmanager
def services(folder: Path, home: Path, **environ: str) -> Iterator[Supervisor]:
    environ = {"SLIPWAY_HOME": str(home), **environ}
    with running([*COMMAND, "--throwaway"], folder, **environ) as started:
        yield started


def addresses(started: Supervisor) -> tuple[str, str]:
    """Wait until both are ready; give their addresses."""
    started.says('{"database_url"', 60)
    line = next(line for line in started.text.splitlines() if line.startswith("{"))
    found = json.loads(line)
    return found["database_url"], found["redis_url"]


def sentence(started: Supervisor) -> str:
    """The one line with which a command ended with status 1."""
    assert started.process.wait(60) == 1
    assert "Traceback" not in started.text
    return started.text.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> Iterator[tuple[Path, str, str]]:
    """Both services on one home whose name has a space and capitals (about 3 s)."""
    folder = tmp_path_factory.mktemp("embedded")
    home = folder / "Übung and space"
    with services(folder, home) as started:
        yield home, *addresses(started)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_both_answer_with_their_password(embedded):
    _, database, cache = embedded
    with psycopg.connect(database) as connection:
        version = connection.execute("SHOW server_version_num").fetchone()[0]
        assert version.startswith("18")
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    assert redis.from_url(cache).info("server")["tcp_port"] == 0


def test_neither_answers_without_it(embedded):
    home, database, _ = embedded
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(database, password="wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(database, user="postgres")
    for password in (None, "wrong"):
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(
                unix_socket_path=f"{home}/run/valkey.sock",
                password=password,
                retry=Retry(NoBackoff(), 0),
            ).ping()


def test_the_portals_role_is_no_superuser_but_may_make_databases(embedded):
    """Buys: the triggers of the audit tables bind the portal itself."""
    with psycopg.connect(embedded[1]) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row == (False, True, False)


def test_nobody_else_may_look_in(embedded):
    home = embedded[0]
    assert mode(home) == 0o700
    assert mode(home / "run") == 0o700
    assert mode(home / "secrets") == 0o700
    assert {mode(path) for path in (home / "secrets").iterdir()} == {0o600}
    assert mode(home / "valkey.conf") == 0o600


def test_a_password_is_in_no_command_line(embedded):
    home = embedded[0]
    for path in (home / "secrets").iterdir():
        assert not alive(path.read_text().strip())


def test_a_second_start_on_the_same_home_is_refused(embedded, tmp_path):
    with services(tmp_path, embedded[0]) as second:
        text = sentence(second)
    assert "Slipway is already running on SLIPWAY_HOME=" in text
    assert "set another SLIPWAY_HOME" in text
    with psycopg.connect(embedded[1]) as connection:
        connection.execute("SELECT 1")


def test_a_path_longer_than_a_socket_address(tmp_path):
    """Buys: a deep checkout works (starts both services)."""
    home = tmp_path / ("long-" * 20) / "home"
    with services(tmp_path, home) as started:
        database, cache = addresses(started)
        with psycopg.connect(database) as connection:
            connection.execute("SELECT 1")
        assert redis.from_url(cache).ping()
        short = (home / "run").readlink()
        assert mode(short) == 0o700
        assert short.stat().st_uid == os.geteuid()
    shutil.rmtree(short)


@pytest.mark.kills
def test_data_survive_kill_9_and_a_clock_that_jumps(tmp_path):
    """Buys: no start depends on a clean stop or on the right time (four starts)."""
    home = tmp_path / "home"
    mark = str(home)
    with services(tmp_path, home) as started:
        with psycopg.connect(addresses(started)[0], autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        started.process.kill()
        until(lambda: not alive(mark), 15, lambda: str(alive(mark)))
    assert kept(tmp_path, home) == 42
    library = faketime()
    for shift in ("+1h", "-1h"):
        assert kept(tmp_path, home, LD_PRELOAD=library, FAKETIME=shift) == 42


def kept(folder: Path, home: Path, **environ: str) -> int:
    with services(folder, home, **environ) as started:
        with psycopg.connect(addresses(started)[0]) as connection:
            answer: int = connection.execute("SELECT answer FROM kept").fetchone()[0]
        started.process.send_signal(signal.SIGINT)
        assert started.process.wait(30) == 0
    return answer


def test_a_half_made_cluster_is_made_anew(tmp_path):
    home = tmp_path / "home"
    (home / "postgres.new" / "base").mkdir(parents=True)
    with services(tmp_path, home) as started:
        addresses(started)
    assert not (home / "postgres.new").exists()


def test_a_cluster_of_another_major_version_is_left_alone(tmp_path):
    home = tmp_path / "home"
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("17\n")
    with services(tmp_path, home) as started:
        text = sentence(started)
    assert "was made by PostgreSQL 17 and this Slipway carries 18" in text
    assert "./slipway backup FILE" in text
    assert [path.name for path in (home / "postgres").iterdir()] == ["PG_VERSION"]


def test_a_stale_pid_file_does_not_stop_a_start(tmp_path):
    """Buys: a container in which process numbers come again starts (starts twice)."""
    home = tmp_path / "home"
    with services(tmp_path, home) as started:
        addresses(started)
    (home / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{home}/postgres\n")
    with services(tmp_path, home) as started:
        addresses(started)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "DATABASE_URL",
            "postgresql://me:hidden@127.0.0.1:1/slipway",
            "DATABASE_URL=postgresql://me:…@127.0.0.1:1/slipway cannot be reached",
        ),
        (
            "REDIS_URL",
            "redis://:hidden@127.0.0.1:1/0",
            "REDIS_URL=redis://:…@127.0.0.1:1/0 cannot be reached",
        ),
        ("DATABASE_URL", "mysql://db/x", "DATABASE_URL must be an address such as postgresql://"),
    ],
)
def test_a_wrong_address_is_one_sentence_without_its_password(tmp_path, name, value, words):
    with services(tmp_path, tmp_path / "home", **{name: value}) as started:
        text = sentence(started)
    assert words in text
    assert "hidden" not in started.text


def test_a_wrong_password_of_a_given_database_is_said(embedded, tmp_path):
    address = embedded[1].replace("slipway:", "slipway:wrong", 1)
    with services(tmp_path, tmp_path / "home", DATABASE_URL=address) as started:
        assert "password authentication failed" in sentence(started)
