"""`./slipway test`: installs what the tests need and runs every check, standard library only."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from portal.supervisor import assets, install
from portal.supervisor.terminal import Failure, fail, say
from tests import services

ROOT = Path(__file__).resolve().parent.parent
BIN = install.VENV / "bin"
DEBIAN_PACKAGES = {"chromium": "chromium", "faketime": "faketime"}  # program → package
# With DATABASE_URL given, the settings want keys; these protect nothing.
KEYS = {"SLIPWAY_SECRET_KEY": "k" * 50, "SLIPWAY_ENCRYPTION_KEYS": "A" * 43}
STEPS = {
    "ruff": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "--quiet", "."],
    "imports": [str(BIN / "lint-imports")],
    "types": [str(BIN / "mypy")],
    "migrations": [str(BIN / "python"), "manage.py", "makemigrations", "--check", "--dry-run"],
}


def main(arguments: list[str]) -> int:
    """Run the steps, pytest last; give pytest's exit status or 1."""
    keep_going = "--keep-going" in arguments
    words = [word for word in arguments if word != "--keep-going"]
    try:
        _install()
    except Failure as failure:
        fail(str(failure))
        return 1
    services.start()
    failed = [] if _names_tests(words) else _run_steps(keep_going=keep_going)
    if failed and not keep_going:
        return 1
    status = subprocess.run(_pytest(words), cwd=ROOT, check=False).returncode
    return status or bool(failed)


def _install() -> None:
    install.ensure("requirements-test.lock")
    assets.bundle(with_tests=True)
    assets.collect(lambda command: subprocess.run(command, cwd=ROOT, check=True))
    missing = [DEBIAN_PACKAGES[name] for name in DEBIAN_PACKAGES if not shutil.which(name)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say(f"Not installed, so what needs it is skipped: {', '.join(missing)}")
        return
    say(f"Installing {', '.join(missing)} …")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "--no-install-recommends", "-y", *missing]):
        done = subprocess.run(
            ["apt-get", "-qq", *words], env=quiet, stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode and os.environ.get("SLIPWAY_TEST_STRICT") == "1":
            raise Failure(f"apt-get {words[0]} failed (see above) and SLIPWAY_TEST_STRICT=1")


def _run_steps(*, keep_going: bool) -> list[str]:
    failed = []
    for name, command in STEPS.items():
        begun = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **KEYS},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        word = "FAILED" if done.returncode else "ok"
        say(f"{name:<10} {word} in {time.monotonic() - begun:.1f} s")
        if done.returncode:
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()
            failed.append(name)
            if not keep_going:
                break
    if failed:
        say(f"Failed before the tests: {', '.join(failed)}")
    return failed


def _names_tests(words: list[str]) -> bool:
    """Tell whether the arguments choose single tests, by name or by path."""
    return "-k" in words or any((ROOT / word.split("::")[0]).exists() for word in words if word)


def _pytest(words: list[str]) -> list[str]:
    command = [str(BIN / "python"), "-m", "pytest"]
    if not any(word.startswith("-n") for word in words):
        command += ["-n", "2"]
    if "-m" not in words:
        command += ["-m", "not slow"]
    return [*command, *words]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
