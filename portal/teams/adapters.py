"""What django-allauth asks us: nobody signs up alone, secrets of second factors are encrypted."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest

from portal.core import crypto


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth is untyped
    """Accounts come by invitation, by an admin or by the company account, never by sign-up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Refuse sign-up."""
        return False


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc] # allauth is untyped
    """The company's identity provider decides who its people are."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Let in whom the provider vouches for by a verified e-mail address."""
        return any(address.verified for address in sociallogin.email_addresses)


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc] # allauth is untyped
    """Stores the secrets of second factors encrypted."""

    _CONTEXT = crypto.context("mfa_authenticator", "data", "any")

    def encrypt(self, text: str) -> str:
        """Return the text encrypted, in hexadecimal."""
        return crypto.encrypt(text, context=self._CONTEXT).hex()

    def decrypt(self, encrypted_text: str) -> str:
        """Return what `encrypt` was given."""
        return crypto.decrypt(bytes.fromhex(encrypted_text), context=self._CONTEXT).reveal()
