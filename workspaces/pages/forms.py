"""Launch form: makes the same LaunchSpec as the API."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from workloads.pages.bodies import body_of_form
from workloads.pages.forms import MIB_PER_GIB, WorkloadForm
from workspaces.launch.launch import LARGEST_DISK_MIB, LaunchSpec


class LaunchForm(WorkloadForm):
    page = "launch"
    api = "api-v1:workspaces"
    in_links = ("tenant", "image", "flavor", "name", "disk_gib", "max_runtime_minutes", "repository")

    disk_gib = forms.IntegerField(
        label=_("Local disk"),
        required=False,
        min_value=0,
        max_value=LARGEST_DISK_MIB // MIB_PER_GIB,
        help_text=_(
            "Fast, at /disk, kept when you stop. 0 for none, at most 16384. Your home directory is "
            "always included."
        ),
    )
    max_runtime_minutes = forms.TypedChoiceField(
        label=_("Auto-stop after"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("You are notified before and can extend it. Files are kept."),
    )
    notify = forms.BooleanField(label=_("Notify me when it is ready, fails or stops"), required=False)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return super().defaults() | {"disk_gib": 0}

    def spec(self) -> LaunchSpec:
        """Return the launch of a valid form."""
        return LaunchSpec(**self.common(), disk_mib=(self.cleaned_data["disk_gib"] or 0) * MIB_PER_GIB)

    def body(self) -> dict[str, Any]:
        disk_mib = (self.cleaned_data.get("disk_gib") or 0) * MIB_PER_GIB
        return body_of_form(self) | ({"disk_mib": disk_mib} if disk_mib else {})
