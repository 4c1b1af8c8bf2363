"""Paths of notices: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver

pages: list[URLPattern | URLResolver] = []
api: list[URLPattern | URLResolver] = []
