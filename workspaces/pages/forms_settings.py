"""Forms that change a workspace, as the API's PATCH does: its settings page, and one click while it waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.forms import show_refusal, time_zone_choices
from quotas.models import Flavor, Pool
from storage.mounts import choosing, mounting
from workloads.images import catalogue, prefixes
from workloads.longest import LONGEST_MINUTES
from workloads.pages.fields import EnvironmentField, plain_text
from workloads.pages.forms import (
    MIB_PER_GIB,
    MOST_CPUS,
    MOST_GPUS,
    MOST_MEMORY_GIB,
    GpusField,
    WorkloadForm,
    lifetimes,
)
from workloads.pages.images import OWN, first_image, own_image
from workloads.sizes.parts import Part, parts_of
from workloads.sizes.sizing import Size, SizeAsked
from workspaces import access
from workspaces.launch.clone import free_name
from workspaces.models import Schedule, ShareRole, Workspace
from workspaces.runs.changes import Change, Lifetime
from workspaces.runs.settings import NewSettings
from workspaces.state import declared, settings
from workspaces.state.declared import SharedWith
from workspaces.state.runs import next_size

from .forms import idle_spans

AS_IT_IS = ""
STARTED_WITH = ("image", "env", "repository")
# Names in refusals, where the form's field is called otherwise.
OTHER_NAMES = {
    "gpus": "flavor",
    "gpu_memory_mib": "flavor",
    "cpu": "flavor",
    "memory_mib": "flavor",
    "pool": "flavor",
}


class SettingsForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=63, widget=plain_text())
    flavor = forms.ChoiceField(
        label=_("Size"), required=False, help_text=_("While it runs, a new size applies at the next start.")
    )
    max_runtime_minutes = forms.TypedChoiceField(
        label=_("Auto-stop after"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("While it runs, a new time counts from now. Files are kept."),
    )
    idle_minutes = forms.TypedChoiceField(
        label=_("Stop when idle for"), required=False, coerce=int, empty_value=None
    )
    volumes = forms.MultipleChoiceField(
        label=_("Volumes"),
        required=False,
        widget=choosing.OneWayEach,
        help_text=_("While it runs, other volumes are mounted at the next start."),
    )
    notify = forms.BooleanField(label=_("Notify me when it is ready, fails or stops"), required=False)
    image = forms.ChoiceField(
        label=_("Image"), required=False, help_text=_("Takes effect at the next start. Files are kept.")
    )
    image_reference = own_image()
    repository = forms.CharField(
        label=_("Git repository"),
        required=False,
        max_length=1024,
        help_text=_("Takes effect at the next start: it is cloned into your home, if it is not there."),
        widget=plain_text(inputmode="url"),
    )
    env = EnvironmentField(
        label=_("Environment"),
        help_text=_(
            "One NAME=value per line, or NAME<<END, lines, and END. Takes effect at the next start. Others in your "
            "tenant cannot see it."
        ),
    )
    secret_env = EnvironmentField(
        label=_("New or changed secrets"),
        help_text=_(
            "One NAME=value per line, or NAME<<END, lines, and END. Takes effect at the next start. Values are never "
            "shown again."
        ),
    )
    forget = forms.MultipleChoiceField(
        label=_("Secrets to remove"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Takes effect at the next start."),
    )

    def __init__(self, data: QueryDict | None, actor: Actor, workspace: Workspace) -> None:
        size = next_size(workspace)
        mounts = mounting.all_of([workspace.pk]).get(workspace.pk, [])
        self.offers, ticked = choosing.offers_for(actor, workspace.tenant, workspace.pool.cluster, mounts)
        self.asked = size.asked()
        coming = settings.coming(workspace)
        image, offered = settings.coming_image(workspace), list(catalogue())
        registries = prefixes(workspace.tenant)
        initial = {
            **first_image(image),
            "repository": coming.repository,
            "env": coming.env,
            "name": workspace.name,
            "flavor": self.asked.flavor or AS_IT_IS,
            "max_runtime_minutes": workspace.max_runtime_minutes or "",
            "idle_minutes": workspace.idle_minutes or "",
            "notify": workspace.notify,
            "volumes": ticked,
        }
        super().__init__(data, initial=initial, label_suffix="")
        pools = flavors_by_pool(workspace)
        self.parts = {part.value: part for pool in pools for part in parts_of(pool, pools[pool])}
        self._choose("flavor", sizes(size, pools, self.parts.values()))
        self._choose(
            "max_runtime_minutes", lifetimes(workspace.max_runtime_minutes, WorkloadForm.without_end)
        )
        self._choose("idle_minutes", idle_spans(workspace.idle_minutes))
        self._choose("volumes", [(key, offer.label) for key, offer in self.offers.items()])
        named = [(one.slug, one.name) for one in {image: "", **dict.fromkeys(offered, "")} if not one.is_own]
        self._choose("image", [*named, (OWN, gettext("Own image"))] if registries or image.is_own else named)
        self.fields["image_reference"].help_text = gettext(
            "Counts with “Own image”. Allowed: %(registries)s"
        ) % {"registries": ", ".join(registries) or gettext("none")}
        self._choose("forget", [(name, name) for name in sorted(coming.secret_env)])
        environment = self.fields["env"]
        assert isinstance(environment, EnvironmentField)
        if not environment.holds(coming.env):
            environment.disabled = True
            environment.help_text = gettext(
                "A value has a line end that forms cannot send. Change it through the API."
            )

    def _choose(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @property
    def offers_own_image(self) -> bool:
        return any(choice.data["value"] == OWN for choice in self["image"].subwidgets)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("image") != OWN:
            self.errors.pop("image_reference", None)
        elif not cleaned.get("image_reference") and "image_reference" not in self.errors:
            self.add_error("image_reference", gettext("Fill this in."))
        return cleaned

    @property
    def volume_rows(self) -> list[choosing.Row]:
        return choosing.rows(self.offers, self["volumes"].value() or ())

    def change(self) -> Change:
        """Return what a valid form changes."""
        data, changed = self.cleaned_data, set(self.changed_data)
        chosen = data["flavor"]
        other_size = "flavor" in changed and chosen != AS_IT_IS
        part = self.parts.get(chosen)
        size = part.size() if part else SizeAsked(flavor=chosen)
        return Change(
            name=data["name"] if "name" in changed else None,
            size=size if other_size else None,
            lifetime=Lifetime(minutes=data["max_runtime_minutes"])
            if "max_runtime_minutes" in changed
            else None,
            idle=Lifetime(minutes=data["idle_minutes"]) if "idle_minutes" in changed else None,
            notify=data["notify"] if "notify" in changed else None,
            volumes=choosing.of_choices(self.offers, data["volumes"]) if "volumes" in changed else None,
            settings=self._settings(changed),
        )

    def _settings(self, changed: set[str]) -> NewSettings | None:
        data = self.cleaned_data
        values: dict[str, Any] = {name: data[name] for name in STARTED_WITH if name in changed}
        if data["image"] == OWN and {"image", "image_reference"} & changed:
            values["image"], values["image_reference"] = None, data["image_reference"]
        if secrets := {**dict.fromkeys(data["forget"]), **data["secret_env"]}:
            values["secret_env"] = secrets
        return NewSettings(**values) if values else None

    def refuse(self, refusal: Refusal) -> None:
        """Show the faults at their fields."""
        show_refusal(self, refusal, lambda name: OTHER_NAMES.get(name, name))


def clock() -> forms.TimeInput:
    return forms.TimeInput(format="%H:%M", attrs={"type": "time"})


class AppForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=declared.LONGEST_NAME,
        widget=plain_text(placeholder="TensorBoard"),
    )
    port = forms.IntegerField(
        label=_("Port"),
        min_value=declared.FIRST_PORT,
        max_value=declared.LAST_PORT,
        widget=forms.NumberInput(attrs={"placeholder": "6006"}),
    )
    shared_with = forms.ChoiceField(label=_("Who can open it"), choices=SharedWith.choices)

    def __init__(self, data: dict[str, str] | None = None) -> None:
        super().__init__(data, auto_id="app-%s", label_suffix="")


class ShareForm(forms.Form):
    username = forms.CharField(label=_("User name"), max_length=150, widget=plain_text(placeholder="alice"))
    role = forms.ChoiceField(
        label=_("Access"),
        choices=[
            (ShareRole.LOOK, _("look: page, logs and metrics")),
            (ShareRole.WORK, _("work: all apps, JupyterLab, terminal, files and SSH too")),
        ],
    )

    def __init__(self, data: dict[str, str] | None = None) -> None:
        super().__init__(data, auto_id="share-%s", label_suffix="")


class ScheduleForm(forms.Form):
    start = forms.TimeField(label=_("Start"), input_formats=["%H:%M"], widget=clock())
    stop = forms.TimeField(label=_("Stop"), input_formats=["%H:%M"], widget=clock())
    days = forms.TypedMultipleChoiceField(
        label=_("Days"),
        coerce=int,
        choices=[(number + 1, WEEKDAYS[number]) for number in range(7)],
        widget=forms.CheckboxSelectMultiple(),
    )
    time_zone = forms.ChoiceField(label=_("Time zone"))
    is_on = forms.BooleanField(
        label=_("On"), required=False, help_text=_("Turn it off for a vacation; its times are kept.")
    )

    def __init__(self, data: QueryDict | None, schedule: Schedule | None, zone: str) -> None:
        kept = {name: getattr(schedule, name) for name in self.base_fields} if schedule else {}
        usual = {"start": "09:00", "stop": "18:00", "days": [1, 2, 3, 4, 5], "time_zone": zone, "is_on": True}
        super().__init__(data, auto_id="schedule-%s", label_suffix="", initial=kept or usual)
        choice = self.fields["time_zone"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = time_zone_choices()


class CloneForm(forms.Form):
    """A new workspace with the settings of another, and with its files if they may be copied."""

    name = forms.CharField(label=_("Name"), max_length=63, widget=plain_text())
    with_files = forms.BooleanField(
        label=_("With a copy of its files"),
        required=False,
        help_text=_(
            "A home of its own with the files of this home, and the same for the local disk. It also mounts the same "
            "volumes, where you can. It starts when the copies are there."
        ),
    )

    def __init__(self, data: QueryDict | None, actor: Actor, workspace: Workspace) -> None:
        super().__init__(data, initial={"name": free_name(actor, workspace)}, label_suffix="")
        if not access.may_copy_files(actor, workspace):
            del self.fields["with_files"]


class InsteadForm(forms.Form):
    """Values to change, with the names of an alternative's body; each may be left out."""

    flavor = forms.SlugField(required=False)
    pool = forms.SlugField(required=False)
    gpus = GpusField(required=False, min_value=0, max_value=MOST_GPUS, decimal_places=4)
    cpu = forms.DecimalField(required=False, min_value=0, max_value=MOST_CPUS, decimal_places=3)
    memory_mib = forms.IntegerField(required=False, min_value=1, max_value=MOST_MEMORY_GIB * MIB_PER_GIB)
    max_runtime_minutes = forms.IntegerField(required=False, min_value=1, max_value=LONGEST_MINUTES)
    notify = forms.TypedChoiceField(
        required=False,
        choices=[("true", ""), ("false", "")],
        coerce=lambda text: text == "true",
        empty_value=None,
    )
    new_disk = forms.BooleanField(required=False)
    image = forms.SlugField(required=False)
    undo_size = forms.BooleanField(required=False)
    # Not values: what the person says to a question, and what follows.
    confirmed = forms.BooleanField(required=False)
    restart = forms.BooleanField(required=False)

    def change(self) -> Change:
        data = self.cleaned_data
        minutes = data["max_runtime_minutes"]
        return Change(
            settings=NewSettings(image=data["image"]) if data["image"] else None,
            undo_size=data["undo_size"],
            size=self._size(),
            lifetime=None if minutes is None else Lifetime(minutes=minutes),
            notify=data["notify"],
            new_disk=data["new_disk"],
        )

    def _size(self) -> SizeAsked | None:
        data = self.cleaned_data
        if not data["flavor"] and not data["pool"]:
            return None
        return SizeAsked(
            flavor=data["flavor"] or None,
            pool=data["pool"] or None,
            gpus=data["gpus"],
            cpu_millicores=round(data["cpu"] * 1000) if data["cpu"] else None,
            memory_mib=data["memory_mib"],
        )


def flavors_by_pool(workspace: Workspace) -> dict[Pool, list[Flavor]]:
    """Sizes by pool, in the cluster that has the workspace's files."""
    found: dict[Pool, list[Flavor]] = {}
    for flavor in Flavor.objects.filter(pool__cluster=workspace.pool.cluster).select_related("pool"):
        found.setdefault(flavor.pool, []).append(flavor)
    return found


def sizes(size: Size, pools: Mapping[Pool, Sequence[Flavor]], parts: Iterable[Part]) -> list[Any]:
    """Choices of ready-made sizes and shares of a GPU, by pool; first the current size, if it is not ready-made."""
    choices: dict[Pool, list[tuple[str, str]]] = {
        pool: [(flavor.slug, flavor.name) for flavor in flavors] for pool, flavors in pools.items()
    }
    for part in parts:
        choices[part.pool].append((part.value, part.name))
    by_pool = [(pool.name, offered) for pool, offered in choices.items()]
    if size.asked().flavor is not None:
        return by_pool
    own = gettext("Current size: %(size)s") % {"size": size.describe()}
    return [(AS_IT_IS, own), *by_pool]
