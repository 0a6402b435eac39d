"""Launch form: makes the same LaunchSpec as the API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from workloads.pages.bodies import body_of_form, filled
from workloads.pages.forms import MIB_PER_GIB, WorkloadForm, minutes_of
from workloads.spans import lifetime
from workspaces.launch.launch import LARGEST_DISK_MIB, LaunchSpec
from workspaces.launch.suggestions import is_taken
from workspaces.state import declared
from workspaces.state.declared import App, SharedWith

IDLE_MINUTES = (30, 60, 120, 240, 720)
APP = re.compile(r"(?P<name>.+?)[\s=:]+(?P<port>[0-9]{1,5})(?:\s+(?P<shared_with>me|tenant))?")


class AppsField(forms.CharField):
    """Field of apps, one per line: name, port, and `tenant` to share it."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "autocomplete": "off"})
        super().__init__(required=False, widget=widget, **options)

    def to_python(self, value: Any) -> list[App]:  # type: ignore[override]
        apps = []
        for number, line in enumerate(str(value or "").splitlines(), start=1):
            if not line.strip():
                continue
            if (found := APP.fullmatch(line.strip())) is None:
                raise forms.ValidationError(
                    gettext("Line %(n)d is no app. Write a name and a port: TensorBoard 6006") % {"n": number}
                )
            apps.append(
                App(
                    name=found["name"],
                    port=int(found["port"]),
                    shared_with=found["shared_with"] or SharedWith.ME,
                )
            )
        if faults := declared.check(apps):
            raise forms.ValidationError(faults["apps"])
        return apps


def lines_of(apps: Iterable[App]) -> str:
    """Return the apps as the field's text."""
    return "\n".join(f"{app.name} {app.port}{' tenant' if app.is_shared else ''}" for app in apps)


class LaunchForm(WorkloadForm):
    page = "launch"
    api = "api-v1:workspaces"
    in_links = (
        "tenant", "image", "image_reference", "flavor", "name", "disk_gib", "max_runtime_minutes", "repository",
    )  # fmt: skip

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
    idle_minutes = forms.TypedChoiceField(
        label=_("Stop when idle for"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("Idle: no GPU or CPU use, no busy notebook, nothing running in a terminal or over SSH."),
    )
    notify = forms.BooleanField(label=_("Notify me when it is ready, fails or stops"), required=False)
    apps = AppsField(
        label=_("Apps"),
        help_text=_(
            "Programs with a web page, such as TensorBoard or Gradio. One per line: name and port, and “tenant” if "
            "everyone in the tenant may open it. You can change them while it runs."
        ),
    )

    def __init__(self, data: QueryDict | None, initial: dict[str, Any], **options: Any) -> None:
        super().__init__(data, initial, **options)
        asked = minutes_of(data.get("idle_minutes", "")) if data else None
        self._choose("idle_minutes", idle_spans(asked or initial.get("idle_minutes")))

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return super().defaults() | {"disk_gib": 0, "idle_minutes": ""}

    def is_taken(self, name: str) -> bool:
        return is_taken(self.actor, self.cleaned_data.get("tenant", ""), name)

    def spec(self) -> LaunchSpec:
        """Return the launch of a valid form."""
        disk_mib = (self.cleaned_data["disk_gib"] or 0) * MIB_PER_GIB
        data = self.cleaned_data
        return LaunchSpec(
            **self.common(), disk_mib=disk_mib, idle_minutes=data["idle_minutes"], apps=data["apps"]
        )

    def body(self) -> dict[str, Any]:
        disk_mib = (self.cleaned_data.get("disk_gib") or 0) * MIB_PER_GIB
        apps = declared.kept(self.cleaned_data.get("apps") or ())
        own = filled(disk_mib=disk_mib, idle_minutes=self.cleaned_data.get("idle_minutes"), apps=apps)
        return body_of_form(self) | own


def idle_spans(minutes: int | None) -> list[tuple[Any, str]]:
    """Choices of a time after which an idle workspace is stopped: the usual ones, and the present or requested one."""
    offered = sorted(set(IDLE_MINUTES) | ({minutes} if minutes else set()))
    return [
        ("", gettext("As your team's policy says, if there is one")),
        *((n, lifetime(n)) for n in offered),
    ]
