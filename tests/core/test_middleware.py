"""Refusals that no view writes: a page for browsers, problem+json below /api/."""

import json

import pytest
from django.core.exceptions import PermissionDenied
from django.test import RequestFactory

from portal.core import middleware
from portal.core.errors import PROBLEM, Refused
from portal.core.middleware import ErrorMiddleware

get = RequestFactory().get


@pytest.mark.parametrize(
    ("answer", "status", "title"),
    [
        (middleware.bad_request, 400, "The request is not valid"),
        (middleware.forbidden, 403, "You may not do this"),
        (middleware.not_found, 404, "There is nothing here"),
    ],
)
def test_a_refusal_is_a_page_or_a_problem(answer, status, title) -> None:
    page = answer(get("/lost"), PermissionDenied())
    assert (page.status_code, page["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert title in page.content.decode()
    problem = answer(get("/api/v1/lost"), PermissionDenied())
    assert (problem.status_code, problem["Content-Type"]) == (status, PROBLEM)
    assert json.loads(problem.content)["title"] == title


def test_an_error_of_ours_keeps_its_status_and_sentence_on_a_page() -> None:
    error = Refused("never_fits", "No node is so large.")
    page = ErrorMiddleware(lambda request: None).process_exception(get("/"), error)
    assert page.status_code == 422
    assert "No node is so large." in page.content.decode()


def test_a_database_that_is_away_is_a_page_that_tries_again() -> None:
    page = middleware.away(get("/"), OSError("away"))
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert 'http-equiv="refresh"' in page.content.decode()
