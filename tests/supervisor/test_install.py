"""What is installed is pinned by hash, names no index, and fits into one environment."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.supervisor.processes import ROOT, clean_environ

LOCKS = sorted(ROOT.glob("requirements*.lock"))


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9._\[\],-]+)==([^\s;\\]+)", path.read_text(), re.M))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_python_package_is_pinned_by_hash_and_names_no_index(lock):
    text = lock.read_text()
    blocks = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^\s*#.*\n", "", text, flags=re.M))
    assert all("==" in block.split()[0] for block in blocks)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text


def test_the_tests_packages_contain_the_portals_own_versions():
    portal, tests = pins(ROOT / "requirements.lock"), pins(ROOT / "requirements-test.lock")
    assert {name: tests.get(name) for name in portal} == portal


def test_every_npm_package_has_its_digest_and_names_no_registry():
    lock = json.loads((ROOT / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())


def test_the_one_command_is_a_short_posix_script():
    script = (ROOT / "slipway").read_text()
    assert script.startswith("#!/bin/sh\n")
    assert len(script.splitlines()) <= 20
    checked = subprocess.run(["/bin/sh", "-n", ROOT / "slipway"], check=False)
    assert checked.returncode == 0


def test_without_a_new_python_it_says_so(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for name in ("readlink", "sh"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    done = subprocess.run(
        [ROOT / "slipway", "up"],
        env=clean_environ(PATH=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
