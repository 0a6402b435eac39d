"""The forms of sign-in and profile. They check form only; what may be is the use cases' to say."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor, visible_tenants
from accounts.errors import Refusal
from accounts.models import Scope, User
from accounts.tokens import DEFAULT_DAYS, LONGEST_DAYS


def show_refusal(form: forms.Form, refusal: Refusal) -> None:
    """Put a use case's refusal beside the fields that it is about."""
    shown = {name: texts for name, texts in refusal.fields.items() if name in form.fields}
    for name, texts in shown.items():
        form.add_error(name, texts)
    if not shown:
        form.add_error(None, f"{refusal.message} {refusal.hint}")


class SignInForm(forms.Form):
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "autofocus": True}
        ),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class SSHKeyForm(forms.Form):
    prefix = "key"

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("So that you know it again: “laptop”.")
    )
    public_key = forms.CharField(
        label=_("Public key"),
        help_text=_(
            "The one line of ~/.ssh/id_ed25519.pub. None yet? Make one with “ssh-keygen -t ed25519”."
        ),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "placeholder": "ssh-ed25519 AAAA…"}),
    )


class TokenForm(forms.Form):
    prefix = "token"

    name = forms.CharField(label=_("Name"), max_length=80, help_text=_("What it is for: “nightly training”."))
    scopes = forms.MultipleChoiceField(
        label=_("May"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple, initial=[Scope.READ]
    )
    tenant = forms.ChoiceField(label=_("Where"), required=False)
    days = forms.IntegerField(
        label=_("Expires after"), min_value=1, max_value=LONGEST_DAYS, initial=DEFAULT_DAYS
    )

    def __init__(self, actor: Actor, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [choice for choice in Scope.choices if actor.may(choice[0])]
        tenant = self.fields["tenant"]
        assert isinstance(tenant, forms.ChoiceField)
        tenant.choices = [("", _("All my tenants")), *visible_tenants(actor).values_list("slug", "name")]


class LanguageForm(forms.ModelForm):  # type: ignore[type-arg]
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES)

    class Meta:
        model = User
        fields = ("language",)
