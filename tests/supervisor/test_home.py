"""The state folder and the port: what is checked before anything starts."""

import os
import shutil
import socket
import stat
from collections import namedtuple
from dataclasses import replace

import pytest

from portal import env as environment
from portal.supervisor import home, ports, swap
from portal.supervisor.terminal import Failure


@pytest.fixture
def env(tmp_path):
    return environment.load({"SLIPWAY_HOME": str(tmp_path / "home")})


def test_keys_are_made_once_and_then_read(env):
    home.prepare(env).release()
    first = environment.load({"SLIPWAY_HOME": str(env.home)})
    assert len(first.secret_key) >= 48
    assert [len(key) for key in first.encryption_keys] == [32]
    home.prepare(env).release()
    assert environment.load({"SLIPWAY_HOME": str(env.home)}) == first


def test_a_loose_folder_is_tightened(env):
    env.home.mkdir(mode=0o755)
    home.prepare(env).release()
    assert stat.S_IMODE(env.home.stat().st_mode) == 0o700


def test_the_lock_names_who_holds_it(env):
    lock = home.prepare(env)
    lock.write(f"{os.getpid()}\nhttp://127.0.0.1:8000\n")
    assert home.is_running(env)
    with pytest.raises(Failure) as caught:
        home.prepare(env)
    assert f"process {os.getpid()} at http://127.0.0.1:8000" in str(caught.value)
    lock.release()
    assert not home.is_running(env)


def test_a_folder_that_cannot_be_written(env, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        Failure, match=r"cannot be written \(Not a directory\); make it writable or"
    ):
        home.prepare(replace(env, home=tmp_path / "file" / "home"))


def test_a_full_disk(env, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, 100 << 20))
    with pytest.raises(Failure, match="has 100 MiB of free disk and 200 MiB are needed"):
        home.prepare(env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_somebody_elses_folder(env):
    env.home.mkdir()
    os.chown(env.home, 4321, 4321)
    with pytest.raises(Failure, match="belongs to user 4321"):
        home.prepare(env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_squatted_short_folder_is_refused(env, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    long = replace(env, home=tmp_path / ("long-" * 20))
    long.home.mkdir()
    home.make_sockets_folder(long)
    short = (long.home / "run").readlink()
    os.chown(short, 4321, 4321)
    with pytest.raises(Failure, match="belongs to somebody else"):
        home.make_sockets_folder(long)
    shutil.rmtree(short)


def test_a_taken_port_names_its_process(env):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Failure) as caught:
            ports.check(replace(env, port=port))
    assert f"port {port} is taken by " in str(caught.value)
    assert f"(process {os.getpid()})" in str(caught.value)
    assert f"SLIPWAY_PORT={port + 1} ./slipway up" in str(caught.value)


def test_a_host_that_is_not_ours(env):
    with pytest.raises(Failure, match="is no address of this machine"):
        ports.check(replace(env, host="192.0.2.1"))


@pytest.mark.parametrize("done", range(5))
def test_an_interrupted_swap_is_finished_at_the_next_start(tmp_path, done):
    """Buys: a power cut in the middle of a restore mixes no two states."""
    draft = swap.draft_folder(tmp_path)
    for folder, text in ((tmp_path, "old"), (draft, "new")):
        for name in ("postgres", "secrets"):
            (folder / name).mkdir(parents=True)
            (folder / name / "is").write_text(text)
    (tmp_path / "migrated").write_text("old")
    swap.mark_ready(draft)
    aside = tmp_path / swap.plan_of(draft)["aside"]
    aside.mkdir()
    steps = [
        (tmp_path / "postgres", aside / "postgres"),
        (draft / "postgres", tmp_path / "postgres"),
        (tmp_path / "secrets", aside / "secrets"),
        (draft / "secrets", tmp_path / "secrets"),
    ]
    for source, target in steps[:done]:
        source.rename(target)
    assert swap.finish(tmp_path) == aside
    assert swap.finish(tmp_path) is None
    for name in ("postgres", "secrets"):
        assert (tmp_path / name / "is").read_text() == "new"
        assert (aside / name / "is").read_text() == "old"
    assert not (tmp_path / "migrated").exists()
