"""What django-allauth's forms say here."""

from typing import Any

from allauth.account import forms
from django.conf import settings


class LoginForm(forms.LoginForm):  # type: ignore[misc] # allauth is untyped
    """The page says below the form what helps with a forgotten password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].help_text = ""


class ChangePasswordForm(forms.ChangePasswordForm):  # type: ignore[misc] # allauth is untyped
    """Offers a reset by mail only where there is mail."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not settings.HAS_MAIL:
            self.fields["oldpassword"].help_text = ""
