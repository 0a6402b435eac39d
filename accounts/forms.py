"""Forms of sign-in and profile. They check the form of the input; use cases decide what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor, visible_tenants
from accounts.credentials.tokens import DEFAULT_DAYS, LONGEST_DAYS
from accounts.errors import Refusal
from accounts.models import Role, Scope, Theme, User, time_zones


def show_refusal(form: forms.BaseForm, refusal: Refusal, called: Callable[[str], str] = str) -> None:
    """Put a refusal's texts beside the form's fields; `called` maps the use case's field names to the form's."""
    for name, texts in refusal.fields.items():
        field = called(name)
        form.add_error(field if field in form.fields else None, texts)
    if not refusal.fields:
        form.add_error(None, f"{refusal.message} {refusal.hint}".strip())


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


class PasswordForm(forms.Form):
    """The person's password again, for changes that a stolen session must not make."""

    password = forms.CharField(
        label=_("Your password"),
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class DeviceCodeForm(forms.Form):
    """The code that a terminal shows."""

    code = forms.CharField(
        label=_("Code from your terminal"),
        max_length=20,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "characters", "autofocus": True}
        ),
    )


class ChangePasswordForm(PasswordForm):
    revoke_tokens = forms.BooleanField(
        label=_("Revoke all my API tokens too"),
        required=False,
        help_text=_("Do this if somebody else may know your password. Scripts need new tokens then."),
    )


class CodeForm(forms.Form):
    """A code of the second factor."""

    code = forms.CharField(
        label=_("Code"),
        max_length=40,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "inputmode": "numeric",
                "autofocus": True,
                "class": "code",
            }
        ),
    )


class SSHKeyForm(forms.Form):
    prefix = "key"

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("A name that you will recognize, such as “laptop”.")
    )
    public_key = forms.CharField(
        label=_("Public key"),
        help_text=_(
            "One line, from a file that ends in .pub. It begins with ssh-ed25519, ecdsa-sha2- or ssh-rsa."
        ),
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "spellcheck": "false",
                "autocomplete": "off",
                "placeholder": "ssh-ed25519 AAAA…",
                "data-no-private-key": _(
                    "This is a private key: it must never leave your machine. Paste the file that ends in .pub."
                ),
            }
        ),
    )

    def forget_private_key(self) -> None:
        """Empty the field if a private key was pasted, before the form is shown again."""
        name = self.add_prefix("public_key")
        if "PRIVATE KEY" in self.data.get(name, ""):
            self.data = {**dict(self.data.items()), name: ""}


SCOPE_HELP = {
    Scope.READ: _("View what you can see: workspaces, the queue, quotas."),
    Scope.WORKSPACES: _(
        "Launch, change, stop and delete workspaces; SSH keys; members of tenants that you own."
    ),
    Scope.JOBS: _("Start and cancel jobs."),
    Scope.VOLUMES: _("Create, expand and delete volumes."),
    Scope.ADMIN: _("Everything admins can do: clusters, pools, tenants, people."),
}


class ServiceTokenForm(forms.Form):
    """A token of a service account: always limited to its tenant, and never an admin's."""

    prefix = "token"

    name = forms.CharField(label=_("Name"), max_length=80, help_text=_("What it is for: “nightly training”."))
    scopes = forms.MultipleChoiceField(
        label=_("May"),
        choices=[choice for choice in Scope.choices if choice[0] != Scope.ADMIN],
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
    )
    days = forms.IntegerField(
        label=_("Expires after"), min_value=1, max_value=LONGEST_DAYS, initial=DEFAULT_DAYS
    )

    def explained_scopes(self) -> list[tuple[Any, Any]]:
        """Return each scope's checkbox with its explanation."""
        return [(box, SCOPE_HELP[Scope(box.data["value"])]) for box in self["scopes"]]


class TokenForm(ServiceTokenForm):
    tenant = forms.ChoiceField(label=_("Where"), required=False)

    def __init__(self, actor: Actor, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [choice for choice in Scope.choices if actor.may(choice[0])]
        tenant = self.fields["tenant"]
        assert isinstance(tenant, forms.ChoiceField)
        tenant.choices = [("", _("All my tenants")), *visible_tenants(actor).values_list("slug", "name")]


class MemberForm(forms.Form):
    username = forms.CharField(
        label=_("User name or e-mail"),
        max_length=254,
        help_text=_("The name they sign in with. They must sign in once first."),
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    role = forms.ChoiceField(
        label=_("Role"),
        choices=Role.choices,
        initial=Role.MEMBER,
        help_text=_(
            "Members can launch workspaces. Viewers can only look. Owners also add and remove "
            "people, and can stop workspaces of others."
        ),
    )


class ServiceAccountForm(forms.Form):
    prefix = "service"

    name = forms.CharField(
        label=_("Name"), max_length=40, help_text=_("Small letters, digits and dashes, such as “nightly”.")
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.MEMBER)


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form in which a field that was not sent keeps its value."""

    language = forms.ChoiceField(
        label=_("Language"),
        choices=[("", _("Same as my browser")), *settings.LANGUAGES],
        required=False,
    )
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)
    theme = forms.ChoiceField(
        label=_("Theme"), choices=[("", _("Same as my system")), *Theme.choices], required=False
    )

    class Meta:
        model = User
        fields = ("language", "time_zone", "theme")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        time_zone = self.fields["time_zone"]
        assert isinstance(time_zone, forms.ChoiceField)
        time_zone.choices = [("", _("Same as my browser")), *time_zone_choices()]
        if self.is_bound:
            for name in self.fields.keys() - self.data.keys():
                del self.fields[name]


@lru_cache(maxsize=1)
def time_zone_choices() -> list[tuple[str, Any]]:
    """Time zones by region: one list of four hundred would be too long."""
    regions: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(time_zones() - {"UTC"}):
        region, place = name.split("/", 1)
        regions.setdefault(region, []).append((name, place.replace("_", " ")))
    return [("UTC", "UTC"), *regions.items()]
