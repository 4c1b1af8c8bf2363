"""`backup` and `restore`: the whole state of the embedded default in one tar file.

The manifest is the last member and holds a digest of every other one, so a cut or changed file is
recognised. A restore is prepared beside the present state and then swapped in by renames; a swap
that was interrupted is finished at the next start.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from portal import env as environment
from portal.env import Env
from portal.env_parsers import REPOSITORY
from portal.supervisor import home, install, postgres, services, swap
from portal.supervisor.terminal import Failure, say, step
from portal.supervisor.tree import Tree

FORMAT = 1
DUMP = "database.dump"
MANIFEST = "manifest.json"
KEYS = ("secrets/secret_key", "secrets/encryption_keys")


class HashingReader(io.RawIOBase):
    """A file that remembers the digest of what was read from it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read from the source."""
        piece = self._source.read(size)
        self.digest.update(piece)
        return piece


def backup(file: Path) -> None:
    """Write the state to `file`, mode 0600, whole or not at all; works while the portal runs."""
    env = _embedded_env("backup")
    if not postgres.data_folder(env).exists():
        raise Failure(f"SLIPWAY_HOME={env.home} holds no state yet; run ./slipway up first")
    install.ensure()
    draft = file.with_name(f"{file.name}.part")
    try:
        with services.running(env):
            _seal_audit()
            with step("Saving the state"):
                draft.touch(mode=0o600)
                draft.chmod(0o600)
                _write(env, draft)
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise Failure(f"{file} cannot be written: {error.strerror}; name another file") from None
    say(f"Saved to {file} ({file.stat().st_size >> 10} KiB). It holds the keys: keep it secret.")


def restore(file: Path, *, force: bool) -> None:
    """Put the state in `file` in place of the present one, which is kept aside.

    Nothing changes unless the whole file was read, verified and loaded. Raises `Failure`.
    """
    env = _embedded_env("restore")
    if home.is_running(env):
        raise Failure("the portal is running on this home; stop it, then restore")
    has_state = postgres.data_folder(env).exists()
    if has_state and not force:
        raise Failure(
            f"SLIPWAY_HOME={env.home} already holds state; add --force to replace it "
            "(it is kept aside), or set SLIPWAY_HOME to an empty folder"
        )
    install.ensure()
    lock = home.prepare(env)
    try:
        draft = swap.draft_folder(env.home)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        with step("Checking the backup"):
            _unpack(file, draft)
        with step("Loading the database"):
            _load(replace(env, home=draft))
        swap.mark_ready(draft)
        kept = swap.finish(env.home)
    finally:
        lock.release()
    if kept and not has_state:
        shutil.rmtree(kept)
    say("Restored." + (f" The state before it is kept in {kept}." if has_state else ""))


def backup_command(arguments: list[str]) -> int:
    """Run `./slipway backup FILE`."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise Failure("`backup` takes one argument: the file to write")
    backup(Path(arguments[0]).absolute())
    return 0


def restore_command(arguments: list[str]) -> int:
    """Run `./slipway restore FILE [--force]`."""
    files = [word for word in arguments if word != "--force"]
    if len(files) != 1 or files[0].startswith("-"):
        raise Failure("`restore` takes one argument: the file to read (and --force)")
    restore(Path(files[0]).absolute(), force="--force" in arguments)
    return 0


def _embedded_env(verb: str) -> Env:
    if not services.uses_embedded("DATABASE_URL"):
        raise Failure(
            f"`{verb}` is for the embedded database and DATABASE_URL is set; use pg_dump and "
            "pg_restore there, and keep SLIPWAY_SECRET_KEY and SLIPWAY_ENCRYPTION_KEYS safe"
        )
    return environment.load(need_keys=False)


def _seal_audit() -> None:
    command = [str(install.PYTHON), "manage.py", "seal_audit"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        say(f"The newest audit events are saved unsealed: {lines[-1]}")


def _write(env: Env, target: Path) -> None:
    dump = env.home / f"{DUMP}.part"
    digests: dict[str, str] = {}
    try:
        command = [str(postgres.programs_folder() / "pg_dump"), "-Fc", "-f", str(dump), "slipway"]
        _run(command, postgres.client_environ(env), "the database could not be saved")
        with tarfile.open(target, "w") as archive:
            for name, path in [(DUMP, dump), *_files(env)]:
                digests[name] = _add(archive, name, path)
            project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
            manifest = {
                "format": FORMAT,
                "slipway": project["version"],
                "postgres_major": postgres.major_version(),
                "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "sha256": digests,
            }
            text = json.dumps(manifest, indent=1).encode()
            member = tarfile.TarInfo(MANIFEST)
            member.size, member.mode = len(text), 0o600
            archive.addfile(member, io.BytesIO(text))
    finally:
        dump.unlink(missing_ok=True)


def _files(env: Env) -> Iterator[tuple[str, Path]]:
    for name in KEYS:
        yield name, env.home / name
    for path in sorted((env.home / "files").rglob("*")):
        if path.is_file():
            yield path.relative_to(env.home).as_posix(), path


def _add(archive: tarfile.TarFile, name: str, path: Path) -> str:
    with path.open("rb") as source:
        member = archive.gettarinfo(arcname=name, fileobj=source)
        member.mode, member.uid, member.gid, member.uname, member.gname = 0o600, 0, 0, "", ""
        reader = HashingReader(source)
        archive.addfile(member, reader)
    return reader.digest.hexdigest()


def _unpack(file: Path, draft: Path) -> None:
    digests: dict[str, str] = {}
    manifest: dict[str, Any] = {}
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                source = archive.extractfile(member)
                if source is None:
                    raise Failure(f"{file} is no backup of Slipway: {member.name} is not a file")
                if member.name == MANIFEST:
                    manifest = json.load(source)
                else:
                    digests[member.name] = _copy(source, draft, member.name)
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror or error}") from None
    except (tarfile.TarError, ValueError) as error:
        raise Failure(f"{file} is no backup of Slipway or is damaged: {error}") from None
    if not manifest or DUMP not in digests:
        raise Failure(f"{file} is incomplete: it has no manifest; use another backup")
    if manifest.get("format") != FORMAT:
        raise Failure(
            f"{file} was made by a newer Slipway ({manifest.get('slipway')}); update first"
        )
    if manifest.get("sha256") != digests:
        raise Failure(
            f"{file} is damaged: its contents do not match its manifest; use another backup"
        )


def _copy(source: IO[bytes], draft: Path, name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[0] not in (DUMP, "secrets", "files"):
        raise Failure(f"the backup is damaged: it holds a file named {name}")
    target = draft / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    reader = HashingReader(source)
    with target.open("wb") as sink:
        os.fchmod(sink.fileno(), 0o600)
        shutil.copyfileobj(reader, sink)
    return reader.digest.hexdigest()


def _load(env: Env) -> None:
    """Make a new cluster in the draft and load the dump into it, as one transaction."""
    home.make_keys(env.home)
    home.make_sockets_folder(env)
    server = postgres.find_server()
    with Tree() as tree:
        postgres.prepare(env, server)
        tree.start(postgres.program(env, server))
        tree.wait_ready()
        postgres.make_database(env)
        password = (env.home / "secrets" / "database_password").read_text().strip()
        dump = env.home / DUMP
        _run(
            [
                str(postgres.programs_folder() / "pg_restore"),
                *("--exit-on-error", "--single-transaction", "--no-owner", "-d", "slipway"),
                str(dump),
            ],
            {**postgres.client_environ(env), "PGUSER": "slipway", "PGPASSWORD": password},
            "the database could not be loaded",
        )
        dump.unlink()
    shutil.rmtree(env.sockets, ignore_errors=True)


def _run(command: list[str], environ: dict[str, str], problem: str) -> None:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise Failure(f"{problem}: {lines[0]}")
