"""How often a person, or an address, may ask."""

from typing import TYPE_CHECKING, ClassVar

from rest_framework import throttling
from rest_framework.request import Request

if TYPE_CHECKING:
    from rest_framework.views import APIView


class _Throttle(throttling.SimpleRateThrottle):
    methods: ClassVar[frozenset[str]]

    def get_cache_key(self, request: Request, view: "APIView") -> str | None:
        if request.method not in self.methods:
            return None
        ident = getattr(request.user, "pk", None) or self.get_ident(request)
        return self.cache_format % {"scope": self.scope, "ident": ident}


class ReadThrottle(_Throttle):
    """Limits reading, by person or by address."""

    scope = "read"
    methods = frozenset({"GET", "HEAD", "OPTIONS"})


class WriteThrottle(_Throttle):
    """Limits writing, by person or by address."""

    scope = "write"
    methods = frozenset({"POST", "PUT", "PATCH", "DELETE"})
