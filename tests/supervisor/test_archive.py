"""Backup and restore of the embedded default: real PostgreSQL, real files."""

import io
import json
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import psycopg
import pytest

from tests.supervisor.processes import ROOT, clean_environ
from tests.supervisor.test_services import addresses, services

SLIPWAY = [sys.executable, "-P", "-m", "portal.supervisor"]


def slipway(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*SLIPWAY, *arguments],
        env=clean_environ(SLIPWAY_HOME=str(home)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def refusal(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def query(folder: Path, home: Path, sql: str) -> list[tuple]:
    with services(folder, home) as started:
        with psycopg.connect(addresses(started)[0], autocommit=True) as connection:
            cursor = connection.execute(sql)
            rows = cursor.fetchall() if cursor.description else []
        started.process.send_signal(signal.SIGINT)
        started.process.wait(30)
    return rows


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[Path, Path]:
    """A home with a table, a sequence and a file, and its backup (about 5 s)."""
    folder = tmp_path_factory.mktemp("saved")
    home, file = folder / "home", folder / "backup.tar"
    query(
        folder,
        home,
        "CREATE EXTENSION btree_gist; CREATE TABLE kept (id serial, word text);"
        "INSERT INTO kept (word) SELECT 'wört ' || n FROM generate_series(1, 1000) n",
    )
    (home / "files" / "logs").mkdir(parents=True)
    (home / "files" / "logs" / "one.zst").write_bytes(b"\0log\xff" * 100)
    done = slipway(home, "backup", str(file))
    assert done.returncode == 0, done.stderr
    assert "keep it secret" in done.stdout
    return home, file


def test_a_backup_is_private_and_complete(saved):
    home, file = saved
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(file.parent.glob("*.part"))
    with tarfile.open(file) as archive:
        names = archive.getnames()
        manifest = json.load(archive.extractfile("manifest.json"))
    assert names[-1] == "manifest.json"
    assert set(manifest["sha256"]) == set(names[:-1])
    assert {"secrets/secret_key", "secrets/encryption_keys", "files/logs/one.zst"} < set(names)
    assert manifest["postgres_major"] == "18"
    assert not (home / "database.dump.part").exists()


def test_a_restore_brings_everything_back(saved, tmp_path):
    """Buys: the whole state moves to another machine (restores and starts)."""
    before, file = saved
    home = tmp_path / "elsewhere"
    done = slipway(home, "restore", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("Restored.")
    rows = query(tmp_path, home, "SELECT count(*), min(word), nextval('kept_id_seq') FROM kept")
    assert rows == [(1000, "wört 1", 1001)]
    for name in ("secrets/secret_key", "secrets/encryption_keys", "files/logs/one.zst"):
        assert (home / name).read_bytes() == (before / name).read_bytes()
    assert not (home / "restoring").exists()
    assert not list(home.glob("before-restore-*"))


def test_a_home_with_state_is_replaced_by_force_alone_and_kept_aside(saved, tmp_path):
    """Buys: a restore never destroys what was there (starts and restores twice)."""
    home = tmp_path / "home"
    query(tmp_path, home, "CREATE TABLE newer AS SELECT 7 AS n")
    assert "already holds state; add --force" in refusal(slipway(home, "restore", str(saved[1])))
    done = slipway(home, "restore", "--force", str(saved[1]))
    assert done.returncode == 0, done.stderr
    assert query(tmp_path, home, "SELECT count(*) FROM kept") == [(1000,)]
    (aside,) = home.glob("before-restore-*")
    assert {path.name for path in aside.iterdir()} >= {"postgres", "secrets"}
    earlier = tmp_path / "earlier"
    aside.rename(earlier)
    assert query(tmp_path, earlier, "SELECT n FROM newer") == [(7,)]


def test_nothing_is_restored_while_the_portal_runs(saved, tmp_path):
    home = tmp_path / "home"
    with services(tmp_path, home) as started:
        addresses(started)
        assert "is running on this home" in refusal(slipway(home, "restore", str(saved[1])))
        assert slipway(home, "backup", str(tmp_path / "live.tar")).returncode == 0


def rewritten(file: Path, target: Path, name: str, change) -> None:
    """Copy an archive with one member changed."""
    with tarfile.open(file) as source, tarfile.open(target, "w") as sink:
        for member in source:
            content = source.extractfile(member).read()
            if member.name == name:
                member, content = change(member, content)
                member.size = len(content)
            sink.addfile(member, io.BytesIO(content))


def other_bytes(member, content):
    return member, content[:-1] + bytes([content[-1] ^ 1])


def escaping(member, content):
    member.name = "../../escaped"
    return member, content


def newer(member, content):
    return member, json.dumps({**json.loads(content), "format": 99}).encode()


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("files/logs/one.zst", other_bytes, "is damaged: its contents do not match its manifest"),
        ("secrets/secret_key", escaping, "it holds a file named ../../escaped"),
        ("manifest.json", newer, "was made by a newer Slipway"),
    ],
)
def test_a_changed_backup_changes_nothing(saved, tmp_path, name, change, words):
    bad, home = tmp_path / "bad.tar", tmp_path / "a" / "home"
    rewritten(saved[1], bad, name, change)
    assert words in refusal(slipway(home, "restore", str(bad)))
    assert not (home / "postgres").exists()
    assert not (tmp_path / "escaped").exists()


def test_a_cut_backup_and_other_files_are_refused(saved, tmp_path):
    home, cut, other = tmp_path / "home", tmp_path / "cut.tar", tmp_path / "other"
    content = saved[1].read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    other.write_text("hello")
    assert "is incomplete" in refusal(slipway(home, "restore", str(cut)))
    assert "is no backup of Slipway" in refusal(slipway(home, "restore", str(other)))
    missing = refusal(slipway(home, "restore", str(tmp_path / "missing")))
    assert "cannot be read: No such file or directory" in missing


def test_a_backup_needs_state_and_a_place(saved, tmp_path):
    assert "holds no state yet" in refusal(slipway(tmp_path / "none", "backup", "/dev/null/x"))
    home = tmp_path / "home"
    shutil.copytree(saved[0], home, symlinks=True, ignore=shutil.ignore_patterns("run"))
    text = refusal(slipway(home, "backup", str(tmp_path / "no" / "such" / "folder")))
    assert "cannot be written: No such file or directory" in text
