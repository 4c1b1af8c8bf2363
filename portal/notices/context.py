"""What the bell of every page needs to know."""

from typing import Any

from django.http import HttpRequest

from portal.notices import selectors


def bell(request: HttpRequest) -> dict[str, Any]:
    """Return how many matters are not well; one query."""
    actor = getattr(request, "actor", None)
    return {"raised_count": selectors.raised_for(actor).count() if actor else 0}
