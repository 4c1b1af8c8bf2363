"""What django-allauth asks us: nobody signs up alone, secrets of second factors are encrypted."""

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest
from django.urls import reverse

from portal.core import crypto
from portal.teams.models import User


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth is untyped
    """Accounts come by invitation, by an admin or by the company account, never by sign-up."""

    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultAccountAdapter.error_messages,
        "email_password_mismatch": "That e-mail and password do not match.",
        "too_many_login_attempts": "Too many tries. Wait 15 minutes, then try again.",
        "account_inactive": "This account is deactivated. Ask an admin of the site.",
    }

    def set_password(self, user: User, password: str) -> None:
        """Set a password of the person's own choice; the one-time password ends."""
        user.must_change_password = False
        super().set_password(user, password)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Leave the form once the password is changed."""
        return reverse("me")

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
