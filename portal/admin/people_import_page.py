"""Admin page that adds people from a CSV: paste or upload, see the fate of each line, then do it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.models import User
from accounts.once import done_once
from accounts.rest.actors import actor_of
from accounts.trail import audit
from portal.admin import people_import
from portal.admin.ways import WAYS, Way

EXAMPLE = "username,email,first_name,last_name,tenant,role\nada,ada@example.org,Ada,Lovelace,research,member"


class ImportForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("People"),
        required=False,
        max_length=people_import.LONGEST,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "placeholder": EXAMPLE}),
        help_text=gettext_lazy(
            "One person and tenant per line: user name, e-mail, first name, last name, slug of the tenant, role. All "
            "but the user name may be empty. A first line may name the columns in another order."
        ),
    )
    file = forms.FileField(label=gettext_lazy("or a CSV file"), required=False)
    way = forms.ChoiceField(
        label=gettext_lazy("New people sign in"), choices=WAYS, widget=forms.RadioSelect, initial=Way.PASSWORD
    )

    def clean(self) -> dict[str, Any]:
        """Read the file, if there is one, in the place of the text."""
        cleaned = super().clean() or self.cleaned_data
        if file := cleaned.get("file"):
            if file.size > people_import.LONGEST:
                raise forms.ValidationError(_("The file is larger than 100 kB."))
            try:
                cleaned["text"] = file.read().decode("utf-8-sig")
            except UnicodeDecodeError:
                raise forms.ValidationError(_("The file is not UTF-8. Save it as “CSV UTF-8”.")) from None
        try:
            cleaned["lines"] = people_import.parse(cleaned.get("text", "").replace("\0", ""))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return cleaned


def respond(page: ModelAdmin[User], request: HttpRequest) -> HttpResponse:
    """Show the form, then what each line does; do it once that was confirmed as shown."""
    if not page.has_add_permission(request):
        raise PermissionDenied
    actor = actor_of(request)
    form = ImportForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        with_password = form.cleaned_data["way"] == Way.PASSWORD
        lines, seen = form.cleaned_data["lines"], request.POST.get("seen")
        if seen is not None:
            try:
                outcome = _apply(request, actor, lines, seen, with_password)
            except Refusal as refusal:
                audit.record_refusal(request, actor, refusal)
                page.message_user(request, f"{refusal.message} {refusal.hint}".strip(), messages.ERROR)
            else:
                if outcome:
                    return _page(page, request, _("People were added"), json.loads(outcome))
        found = people_import.fates(lines, with_password=with_password)
        now = people_import.digest(found)
        context |= {
            "once": uuid4(),
            "fates": found,
            "text": form.cleaned_data["text"],
            "way": form.cleaned_data["way"],
            "seen": now,
            "has_changed": seen is not None and seen != now,
            "doing": sum(fate.does_something for fate in found),
            "refused": sum(bool(fate.refused) for fate in found),
        }
    return _page(page, request, _("Add people from a CSV"), context)


def _apply(
    request: HttpRequest, actor: Actor, lines: Sequence[people_import.Line], seen: str, with_password: bool
) -> str:
    """Do it once: a second press of the button gets the first passwords again, for a day, and nobody else does."""

    @transaction.atomic
    def work() -> str:
        return people_import.apply_as_shown(actor, lines, seen, with_password=with_password)

    return done_once(actor.user, request.POST, work)


def _page(page: ModelAdmin[User], request: HttpRequest, title: str, context: dict[str, Any]) -> HttpResponse:
    common = {**page.admin_site.each_context(request), "opts": page.opts, "title": title}
    answer = TemplateResponse(request, "admin/people_import.html", {**common, **context})
    answer.headers["Cache-Control"] = "no-store"  # it may hold first passwords
    return answer
