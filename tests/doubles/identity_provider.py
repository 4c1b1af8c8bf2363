"""An OpenID Connect provider on loopback that signs one person in without asking.

It is no kinder than a real one: it checks client, redirect address, PKCE and that a code is used
once, and its id token is signed (OpenID Connect Core 1.0; RFC 7636).
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.doubles.receiver import Got, receiver

CLIENT_ID, CLIENT_SECRET = "slipway", "client-secret-of-the-tests"


@dataclass
class Provider:
    issuer: str = ""
    email: str = "grace@example.org"
    is_verified: bool = True
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def answer(self, got: Got) -> tuple[int, dict[str, str], bytes]:
        path = urlsplit(got.path)
        query = {name: values[0] for name, values in parse_qs(path.query).items()}
        form = {name: values[0] for name, values in parse_qs(got.body.decode()).items()}
        match path.path:
            case "/.well-known/openid-configuration":
                return _json(self._configuration())
            case "/authorize":
                return self._authorize(query)
            case "/token":
                return self._token(form)
            case "/userinfo":
                return _json(self._person())
            case "/jwks":
                key = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
                return _json({"keys": [{**key, "kid": "1", "alg": "RS256", "use": "sig"}]})
        return 404, {}, b""

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _person(self) -> dict[str, Any]:
        return {
            "sub": hashlib.sha256(self.email.encode()).hexdigest()[:16],
            "email": self.email,
            "email_verified": self.is_verified,
            "name": "Grace Hopper",
        }

    def _authorize(self, query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if query.get("client_id") != CLIENT_ID or query.get("code_challenge_method") != "S256":
            return 400, {}, b"wrong client, or no PKCE"
        code = secrets.token_urlsafe()
        self.codes[code] = query
        back = f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
        return 302, {"Location": back}, b""

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or form.get("client_secret") != CLIENT_SECRET
            or form.get("redirect_uri") != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            return 400, {"Content-Type": "application/json"}, b'{"error": "invalid_grant"}'
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        token = jwt.encode(
            {**claims, **self._person()}, self.key, algorithm="RS256", headers={"kid": "1"}
        )
        return _json(
            {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "id_token": token}
        )


def _json(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


@contextmanager
def identity_provider() -> Iterator[Provider]:
    provider = Provider()
    with receiver() as double:
        provider.issuer = f"http://localhost:{double.port}"
        double.answer = provider.answer
        yield provider
