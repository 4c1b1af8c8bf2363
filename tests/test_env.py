"""portal.env: what is read, what is refused and in which words, and the documented table."""

import base64
import re
from pathlib import Path

import pytest

from portal import env

KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
KEYS = {"SLIPWAY_SECRET_KEY": "s" * 50, "SLIPWAY_ENCRYPTION_KEYS": KEY}
OPERATING = Path(__file__).resolve().parent.parent / "docs" / "operating.md"


def test_defaults_are_those_of_the_contract(tmp_path):
    found = env.load({"SLIPWAY_HOME": str(tmp_path)})
    assert (found.host, found.port, found.public_url) == (
        "127.0.0.1",
        8000,
        "http://127.0.0.1:8000",
    )
    assert found.log_max_bytes == 1 << 30
    assert found.log_days == 90
    assert found.sample_days == (30, 365)
    assert found.disk_floor_bytes == 1 << 30
    assert found.bootstrap_admin_email == "admin@slipway.local"


def test_default_home_lies_in_the_repository_wherever_it_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert env.load({}).home == OPERATING.parent.parent / "var"
    assert env.load({"SLIPWAY_HOME": "state"}).home == tmp_path / "state"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "SLIPWAY_PROT",
            "1",
            "SLIPWAY_PROT is not a setting of Slipway: did you mean SLIPWAY_PORT?",
        ),
        ("SLIPWAY_ZZZZZZ", "1", "SLIPWAY_ZZZZZZ is not a setting of Slipway"),
        ("SLIPWAY_PORT", "eighty", "SLIPWAY_PORT must be a whole number from 1 to 65535"),
        ("SLIPWAY_PORT", "70000", "SLIPWAY_PORT must be a whole number"),
        ("SLIPWAY_PUBLIC_URL", "portal.example", "SLIPWAY_PUBLIC_URL must be an address such as"),
        ("SLIPWAY_PUBLIC_URL", "https://[::1", "SLIPWAY_PUBLIC_URL must be an address such as"),
        ("SLIPWAY_PUBLIC_URL", "https://a:port", "SLIPWAY_PUBLIC_URL must be an address such as"),
        ("SLIPWAY_PUBLIC_URL", "ftp://portal", "known: https, http"),
        ("SLIPWAY_DEBUG", "perhaps", "SLIPWAY_DEBUG must be true or false"),
        ("SLIPWAY_MFA", "totp,sms", "SLIPWAY_MFA must be a comma list of: totp, passkeys"),
        ("SLIPWAY_ALLOWED_NETWORKS", "10.0.0.1/8", "has host bits set"),
        ("SLIPWAY_ENCRYPTION_KEYS", "c2hvcnQ", "32-byte keys in base64url"),
        ("SLIPWAY_ENCRYPTION_KEYS", "not base64!", "32-byte keys in base64url"),
        ("SLIPWAY_SECRET_KEY", "short", "at least 32 characters"),
        ("SLIPWAY_SAMPLE_DAYS", "30", "two numbers of days such as 30,365"),
        ("SLIPWAY_LOG_FORMAT", "xml", "must be one of: json, console"),
        ("DATABASE_URL", "mysql://db/slipway", "DATABASE_URL must be an address such as"),
        ("REDIS_URL", "6379", "REDIS_URL must be an address such as redis://"),
    ],
)
def test_refuses_in_one_sentence_that_names_the_variable(name, value, sentence):
    with pytest.raises(env.EnvError, match=re.escape(sentence)) as caught:
        env.load({name: value})
    assert str(caught.value).startswith(name)
    assert "\n" not in str(caught.value)


def test_a_jobs_names_and_the_tests_names_are_known():
    env.load({"SLIPWAY_JOB_ID": "1", "SLIPWAY_PARAM_LR": "0.1", "SLIPWAY_TEST_STRICT": "1"})


def test_the_client_ignores_unknown_names():
    found = env.load({"SLIPWAY_FUTURE": "1", "SLIPWAY_TOKEN": "slw_x"}, strict=False)
    assert found.token == "slw_x"


def test_only_its_own_settings_stop_the_client():
    assert env.load({"SLIPWAY_PORT": "eighty"}, strict=False).port == 8000
    with pytest.raises(env.EnvError, match="SLIPWAY_URL must be an address"):
        env.load({"SLIPWAY_URL": "portal"}, strict=False)


def test_the_clients_file_lies_where_the_desktop_says():
    assert env.config_folder({"XDG_CONFIG_HOME": "/x"}) == Path("/x/slipway")
    assert env.config_folder({"XDG_CONFIG_HOME": "x"}) == Path.home() / ".config" / "slipway"
    assert env.config_folder({}) == Path.home() / ".config" / "slipway"


def test_a_given_database_needs_keys_of_its_own(tmp_path):
    given = {"DATABASE_URL": "postgresql://u:p@db/slipway", "SLIPWAY_HOME": str(tmp_path)}
    with pytest.raises(env.EnvError, match="SLIPWAY_SECRET_KEY is missing; set it"):
        env.load(given)
    assert env.load({**given, **KEYS}).encryption_keys == (b"k" * 32,)
    assert env.load(given, need_keys=False).secret_key == ""
    assert not env.load(given, strict=False).secret_key


def test_two_keys_rotate():
    other = base64.urlsafe_b64encode(b"n" * 32).decode().rstrip("=")
    found = env.load({**KEYS, "SLIPWAY_ENCRYPTION_KEYS": f"{other},{KEY}"})
    assert found.encryption_keys == (b"n" * 32, b"k" * 32)


def test_secrets_are_not_in_the_repr():
    given = {**KEYS, "DATABASE_URL": "postgresql://u:hidden-1@db/x", "SLIPWAY_TOKEN": "hidden-2"}
    shown = repr(env.load({**given, "REDIS_URL": "redis://:hidden-3@cache/0"}))
    assert "hidden" not in shown
    assert "sss" not in shown
    assert "kkk" not in shown


@pytest.mark.parametrize("folder", ["plain", "With Capitals and space", "Über,komma%41"])
def test_embedded_addresses_are_understood_by_every_library(tmp_path, folder):
    """Buys: a home with any name works with Django, redis-py and Celery alike."""
    import dj_database_url
    from kombu.utils.url import url_to_parts
    from redis.connection import parse_url

    home = tmp_path / folder
    (home / "secrets").mkdir(parents=True)
    (home / "secrets" / "database_password").write_text("db-word\n")
    (home / "secrets" / "redis_password").write_text("redis-word\n")
    found = env.load({"SLIPWAY_HOME": str(home)})
    database = dj_database_url.parse(found.database_url)
    assert database["HOST"] == str(home / "run")
    assert (database["USER"], database["PASSWORD"], database["NAME"]) == (
        "slipway",
        "db-word",
        "slipway",
    )
    redis = parse_url(found.redis_url)
    assert redis["path"] == f"{home}/run/valkey.sock"
    assert redis["password"] == "redis-word"
    transport, address = found.celery_broker_url.split("+", 1)
    parts = url_to_parts(address)
    assert (transport, parts.password) == ("redis", "redis-word")
    assert f"/{parts.path}" == f"{home}/run/valkey.sock"


def test_a_given_redis_is_celerys_broker_as_it_is():
    found = env.load({**KEYS, "REDIS_URL": "rediss://:p@cache:6380/2"})
    assert found.celery_broker_url == "rediss://:p@cache:6380/2"


def test_every_setting_is_in_the_operators_table():
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) \| (.*) \|$", OPERATING.read_text(), re.M)
    documented = {name: (default, meaning) for name, default, meaning in rows}
    for setting in env.settings():
        default = f"`{setting.default}`" if setting.default else ""
        assert documented.get(setting.name) == (default, setting.doc), (
            f"docs/operating.md: | `{setting.name}` | {default} | {setting.doc} |"
        )
