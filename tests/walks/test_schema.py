"""The OpenAPI document is valid and complete, and the portal does what it says."""

import pytest
import schemathesis
from django.core.cache import cache
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, settings
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_schema_conformance,
    status_code_conformance,
)

from portal.notices import services as notices
from portal.teams.services import members, secrets, tokens
from tests.people import make_world, token_of

pytestmark = pytest.mark.django_db(transaction=True)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    ignored_auth,
]
EXAMPLES = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}
HOOK = "https://93.184.216.34/hook"

document = SchemaGenerator().get_schema(request=None, public=True)
schema = schemathesis.openapi.from_dict(document)
schema.app = get_wsgi_application()


@pytest.fixture
def real(transactional_db) -> dict[str, str]:
    """Name of a path parameter → a value that exists, and the token of an admin."""
    world = make_world()
    manager, admin = world.actor("manager"), world.actor("admin")
    route = notices.create_route(
        manager, team=world.team, kind="webhook", name="x", target=HOOK
    ).row
    invited = members.add_member(manager, world.team, email="new@example.org", role="viewer")
    cache.clear()
    return {
        "slug": world.team.slug,
        "user": world.people["member"].pk,
        "name": secrets.create_secret(manager, world.team, name="KEY", value="x").name,
        "token": tokens.create_token(admin, name="x", scopes=["read"]).row.pk,
        "invitation": invited.invitation.pk,
        "route": route.pk,
        "delivery": notices.test_route(manager, route).pk,
        "bearer": token_of(world.people["admin"]),
    }


def ask(case, real) -> None:
    """Send one generated request; every other one names things that exist, and is no repetition."""
    cache.clear()
    if len(str(case.body or case.query)) % 2:
        given = case.path_parameters or {}
        case.path_parameters = {name: real.get(name, value) for name, value in given.items()}
        case.headers.pop("Idempotency-Key", None)
    headers = {"Authorization": f"Bearer {real['bearer']}"}
    case.call_and_validate(headers=headers, checks=CHECKS)


@schema.parametrize()
@settings(**EXAMPLES, max_examples=12)
def test_the_portal_keeps_to_its_schema(case, real):
    """Over 300 ms: a dozen generated requests for each operation."""
    ask(case, real)


@pytest.mark.slow
@schema.parametrize()
@settings(**EXAMPLES, max_examples=100)
def test_the_portal_keeps_to_its_schema_for_long(case, real):
    """Over 300 ms: a hundred generated requests for each operation."""
    ask(case, real)


def test_the_document_is_valid_and_nothing_in_it_is_guessed(tmp_path):
    call_command("spectacular", "--fail-on-warn", "--file", str(tmp_path / "schema.yml"))
    validate(document, cls=OpenAPIV31SpecValidator)
    assert document["openapi"] == "3.1.0"


def test_every_rest_route_is_in_the_document():
    rest = next(p for p in get_resolver().url_patterns if str(p.pattern) == "api/v1/")
    assert len(rest.url_patterns) == len(document["paths"])


def test_every_operation_declares_its_errors_and_how_to_sign_in():
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            known = set(operation["responses"])
            assert {"400", "401", "403", "404", "429", "503"} <= known, (method, path)
            assert method == "get" or {"409", "413", "415", "422"} <= known, (method, path)
            assert operation["security"] == [{"token": []}, {"session": []}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_everybody_may_read_the_document(client):
    answer = client.get("/api/v1/schema", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.json()["openapi"] == "3.1.0"
    assert client.get("/api/v1/schema").status_code == 200
