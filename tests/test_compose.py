"""docker-compose.yml and Dockerfile, read and checked: no Docker engine is needed."""

import re
from pathlib import Path

import pytest
import yaml

from portal import env
from portal.supervisor import up

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
PORTAL = ("setup", "web", "worker", "beat")
SECRET_NAME = re.compile(r"PASSWORD|SECRET|KEY|_URL")


def given(text: str) -> str:
    """Fill in what .env gives."""
    key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    values = {"SLIPWAY_SECRET_KEY": "s" * 64, "SLIPWAY_ENCRYPTION_KEYS": key, "EMAIL_URL": ""}
    return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: values.get(found[1], "word"), text)


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_is_root_or_writes_its_root(name):
    service = SERVICES[name]
    assert str(service["user"]).split(":")[0] not in ("0", "root")
    assert service["read_only"] is True
    assert "/tmp" in service["tmpfs"]  # noqa: S108 - inside a container
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "setup"])
def test_every_lasting_service_has_a_health_check_and_starts_again(name):
    assert SERVICES[name]["healthcheck"]["test"]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_no_secret_is_written_down():
    example = (ROOT / ".env.example").read_text()
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if SECRET_NAME.search(name):
                assert "${" in str(value), name
    text = (ROOT / "docker-compose.yml").read_text()
    for name in set(re.findall(r"\$\{(\w+)", text)):
        assert re.search(rf"^{name}=", example, re.M), f"{name} is missing in .env.example"
    for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "SLIPWAY_SECRET_KEY"):
        assert re.search(rf"^{name}=$", example, re.M), f"{name} must be empty there"


@pytest.mark.parametrize("name", PORTAL)
def test_the_portals_settings_are_known_and_well_formed(name):
    found = env.load(
        {key: given(str(value)) for key, value in SERVICES[name]["environment"].items()}
    )
    assert found.database_url.endswith("@postgres/slipway")
    assert found.redis_url.startswith("redis://")
    assert found.public_url.startswith("https://")


def test_commands_run_what_up_runs():
    by_name = {program.name: program for program in up.programs(env.load({}))}
    for name in ("web", "worker", "beat"):
        embedded = " ".join(by_name[name].command)
        composed = " ".join(SERVICES[name]["command"])
        for word in ("portal.asgi:application", "portal.celery", "reconcile,stream,notify"):
            assert (word in embedded) == (word in composed), (name, word)


def test_workers_are_replicas_and_beat_is_one():
    assert SERVICES["worker"]["deploy"]["replicas"] >= 2
    assert SERVICES["beat"]["deploy"]["replicas"] == 1


def test_only_the_proxy_is_published_and_the_stores_have_no_way_out():
    assert [name for name, service in SERVICES.items() if service.get("ports")] == ["proxy"]
    assert SERVICES["proxy"]["profiles"] == ["tls"]
    assert COMPOSE["networks"]["inside"]["internal"] is True
    for name in ("postgres", "redis"):
        assert SERVICES[name]["networks"] == ["inside"]
    address = SERVICES["proxy"]["networks"]["outside"]["ipv4_address"]
    assert f"--forwarded-allow-ips={address}" in SERVICES["web"]["command"]


def test_everything_waits_for_the_migrations():
    for name in ("web", "worker", "beat"):
        waits = SERVICES[name]["depends_on"]
        assert waits["setup"]["condition"] == "service_completed_successfully"


def test_the_image_is_pinned_hashed_and_not_root():
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    stages = [index for index, line in enumerate(lines) if line.startswith("FROM ")]
    for index in stages:
        image = lines[index].split()[1]
        assert ":" in image, lines[index]
        assert not image.endswith(":latest"), lines[index]
    for target in ("portal", "proxy"):
        start = next(i for i in stages if lines[i].endswith(f" AS {target}"))
        end = next((i for i in stages if i > start), len(lines))
        users = [line for line in lines[start:end] if line.startswith("USER ")]
        assert users[-1] == "USER 10001:10001"
    installs = [line for line in lines if re.search(r"(pip|npm) (install|ci)", line)]
    assert installs
    assert all("--require-hashes" in line or "npm ci" in line for line in installs)


def test_every_copied_path_exists_and_is_not_ignored():
    kept = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        words = line.split()
        if not words or words[0] != "COPY" or words[1].startswith("--from"):
            continue
        for path in words[1:-1]:
            assert (ROOT / path).exists(), path
            assert path in kept, path
