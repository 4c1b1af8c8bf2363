"""What every page shares: forms that lose nothing, errors as pages, one page of a list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods

from portal.core import errors, logs

T = TypeVar("T")
ROWS = 50
THEMES = ("light", "dark")
FORBIDDEN = "not_allowed"  # the code of a service that this person may not use at all

both = require_http_methods(["GET", "HEAD", "POST"])
"""Decorates a page that holds a form."""


def attempt(form: forms.Form, call: Callable[..., T]) -> T | None:
    """Call the service with the form's values; put its refusal beside the fields.

    Returns `None` when the form was wrong or the service refused; the form then says why and
    still holds what was typed. Who may not do this at all gets a 403.
    """
    if not form.is_valid():
        return None
    try:
        return call(**form.cleaned_data)
    except (errors.Invalid, errors.Conflict, errors.Refused, errors.NotAllowed) as error:
        if error.code == FORBIDDEN:
            raise
        placed = False
        for wrong in error.errors:
            parts = wrong.pointer.strip("/").split("/")
            name = next((n for n in (".".join(parts[:2]), parts[0]) if n in form.fields), None)
            if name is not None:
                within = "/".join(parts[len(name.split(".")) :])
                form.add_error(name, f"{within}: {wrong.message}" if within else wrong.message)
                placed = True
        if not placed:
            form.add_error(None, error.message)
        return None


def act(
    request: HttpRequest,
    call: Callable[[], Any],
    *,
    done: str,
    to: str | Callable[[Any], str],
    back: str = "",
) -> HttpResponse:
    """Do what a button says and go to the page `to`, with what happened as a message.

    With a callable `to` names the page of what was made; after a refusal it is the page `back`.
    """
    try:
        made = call()
    except (errors.Invalid, errors.Conflict, errors.Refused, errors.NotAllowed) as error:
        if error.code == FORBIDDEN:
            raise
        messages.error(request, error.message)
    else:
        if done:
            messages.success(request, done)
        return HttpResponseRedirect(to if isinstance(to, str) else to(made))
    return HttpResponseRedirect(to if isinstance(to, str) else back)


def error_page(request: HttpRequest, *, status: int, detail: str, title: str = "") -> HttpResponse:
    """Answer with the page of an error, in the shape of templates/oops.html.

    Touches neither database nor session, so that it can also say that those are away.
    """
    theme = request.COOKIES.get("theme", "")
    context = {
        "number": status,
        "title": title or errors.TITLES.get(status, "Error"),
        "detail": detail,
        "request_id": logs.request_id(),
        "theme": theme if theme in THEMES else "",
    }
    template = "503.html" if status == 503 else "oops.html"
    return HttpResponse(render_to_string(template, context), status=status)


def numbered(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """Return the page that `?page=` names; a wrong number gives the nearest page."""
    return Paginator(rows, ROWS).get_page(request.GET.get("page"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some rows of a list that nobody counts, newest first, and where the next ones begin."""

    rows: list[Any]
    is_newest: bool
    """Nothing was newer when it was read."""
    older: str = ""
    """The id before which the next rows are; empty at the end."""
    newer: str = ""
    """The id after which the newer rows are; empty at the beginning."""


def stretch(request: HttpRequest, rows: QuerySet[Any], *, size: int = ROWS) -> Stretch:
    """Return the rows before `?before=ID` or after `?after=ID`, newest first.

    The first page is one query, and so is each other one; one that would be short at the newest end
    becomes the first page.
    """
    before, after = (request.GET.get(name, "")[:26] for name in ("before", "after"))
    if after:
        found = list(rows.filter(pk__gt=after).order_by("pk")[: size + 1])
        if len(found) > size:
            shown = found[:size][::-1]
            return Stretch(rows=shown, is_newest=False, older=shown[-1].pk, newer=shown[0].pk)
    elif before:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: size + 1])
    is_newest = bool(after) or not before
    return Stretch(
        rows=found[:size],
        is_newest=is_newest,
        older=found[size - 1].pk if len(found) > size else "",
        newer=found[0].pk if found and not is_newest else "",
    )
