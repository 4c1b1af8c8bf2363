"""The dashboard: the one page that mixes rooms."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    """Show what is true now and what to do next."""
    return render(request, "portal/dashboard.html", {})
