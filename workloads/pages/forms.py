"""Fields that the forms of workspaces and jobs have in common, with words and units for people."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.forms import show_refusal
from accounts.models import Tenant
from quotas.models import Pool
from quotas.pools.needs import GpuAsked
from storage.models import Connection
from storage.mounts import choosing
from storage.mounts.mounting import MountWish
from workloads.asking import check_env, check_name, check_repository
from workloads.longest import LONGEST_MINUTES
from workloads.models import Image
from workloads.sizes.choices import PoolChoice
from workloads.sizes.sizing import DEFAULT_CPU_MILLICORES, DEFAULT_MEMORY_MIB, SizeAsked
from workloads.spans import lifetime

from .fields import EnvironmentField, plain_text
from .images import OWN, ChoosesImage

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MIB_PER_GIB = 1024
MOST_GPUS = 4096
MOST_CPUS = 1024
MOST_MEMORY_GIB = 16 * 1024
LIFETIMES_MINUTES = tuple(hours * 60 for hours in (1, 4, 8, 24, 72, 168))
# Value of the flavor field for "Find me a GPU". No slug has this character.
FIND = "*"
FINDING = ("gpus", "gpu_memory_gb", "compute_capability", "ecc", "in_pool", "cpu", "memory_gib")
# Names in refusals, where the form's field is called otherwise.
OTHER_NAMES = {
    "disk_mib": "disk_gib",
    "memory_mib": "memory_gib",
    "gpu_memory_mib": "gpu_memory_gb",
    "min_memory_mib": "gpu_memory_gb",
    "min_compute_capability": "compute_capability",
    "gpu": "flavor",
    "pool": "flavor",
}


class GpusField(forms.DecimalField):
    """Exact number of GPUs: 0.25 is a quarter of one."""

    def clean(self, value: Any) -> Fraction | None:
        number = super().clean(value)
        return None if number is None else Fraction(number)


class WorkloadForm(ChoosesImage):
    """Form of a launch or a job: who, what, how large and with which data."""

    page: ClassVar[str]  # name of the form's own address
    api: ClassVar[str]  # name of the API's address for the same
    # Fields in the form's own links. Not the environment: its values do not belong into links, secrets least of all.
    in_links: ClassVar[tuple[str, ...]]
    without_end: ClassVar[StrOrPromise] = _("Never")
    priority: ClassVar[int] = 0
    folded: ClassVar[tuple[str, ...]] = ("repository", "env", "secret_env", "connections")

    once = forms.UUIDField(required=False, widget=forms.HiddenInput)
    tenant = forms.ChoiceField(label=_("Tenant"), help_text=_("The tenant whose quota it uses."))
    flavor = forms.ChoiceField(
        label=_("Size"),
        widget=forms.RadioSelect,
    )
    gpus = GpusField(
        label=_("How many"),
        required=False,
        min_value=0,
        max_value=MOST_GPUS,
        decimal_places=4,
        help_text=_(
            "A fraction such as 0.25 where GPUs are shared. Empty: the smallest fraction that is enough."
        ),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    # In GB, as GPUs are sold: of the 80 GB of an H100, programs have 79.6 GiB.
    gpu_memory_gb = forms.IntegerField(
        label=_("GPU memory, at least"), required=False, min_value=1, max_value=MOST_MEMORY_GIB
    )
    compute_capability = forms.ChoiceField(label=_("Compute capability, at least"), required=False)
    ecc = forms.BooleanField(label=_("With ECC memory"), required=False)
    in_pool = forms.ChoiceField(label=_("Pool"), required=False)
    cpu = forms.DecimalField(
        label=_("CPU cores"), required=False, min_value=0.1, max_value=MOST_CPUS, decimal_places=3
    )
    memory_gib = forms.IntegerField(label=_("Memory"), required=False, min_value=1, max_value=MOST_MEMORY_GIB)
    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        help_text=_("1 to 63 letters, digits, dots, dashes and spaces. You can change it later."),
        # Its faults are said while it is typed, too.
        widget=plain_text(**{"aria-describedby": "id_name_helptext id_name_error"}),
    )
    volumes = forms.MultipleChoiceField(
        label=_("Volumes"),
        required=False,
        widget=choosing.OneWayEach,
        help_text=_(
            "Your home is always mounted. A workspace that writes to a dataset has it alone; "
            "workspaces that only read share it."
        ),
    )
    connections = forms.TypedMultipleChoiceField(
        label=_("Connections"),
        required=False,
        coerce=uuid.UUID,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Their keys arrive as secret environment; the first also under the names of the AWS tools."
        ),
    )
    max_runtime_minutes = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    notify = forms.BooleanField(required=False)
    repository = forms.CharField(
        label=_("Git repository"),
        required=False,
        max_length=1024,
        help_text=_("Cloned into your home at the first start. As https://host/group/project.git"),
        widget=plain_text(inputmode="url"),
    )
    env = EnvironmentField(
        label=_("Environment"),
        help_text=_(
            "One NAME=value per line, 64 KiB at most. A value of several lines: NAME<<END, its lines, then END on a "
            "line of its own. Others in your tenant cannot see it."
        ),
    )
    secret_env = EnvironmentField(
        label=_("Secret environment"),
        help_text=_("The same for passwords and tokens: stored encrypted, and never shown again."),
    )

    def __init__(
        self,
        data: QueryDict | None,
        initial: dict[str, Any],
        *,
        actor: Actor,
        tenants: Sequence[Tenant],
        catalogue: Sequence[Image],
        registries: Mapping[str, Sequence[str]],
        pools: Sequence[PoolChoice],
        volumes: Mapping[str, choosing.Offer],
        connections: Iterable[Connection],
    ) -> None:
        self.not_offered: dict[str, Any] = {}  # first values that nobody can choose any more
        super().__init__(data, initial=self.defaults() | {"once": uuid.uuid4()} | initial, label_suffix="")
        for name, field in self.fields.items():
            field.error_messages |= LIMITS
            if name in {"image", "flavor"}:
                field.error_messages["required"] = _("Choose one.")
        self.actor, self.tenants = actor, tenants
        self.offers = volumes
        self._choose("connections", [(str(one.pk), f"{one.name} · {one.tenant.name}") for one in connections])
        self._choose("volumes", [(key, offer.label) for key, offer in volumes.items()])
        self.pools = {choice.pool["slug"]: choice.pool for choice in pools}
        self.pool_nodes = {choice.flavors[0].pool_id: choice.nodes for choice in pools}
        flavors = [(flavor.slug, flavor.name) for choice in pools for flavor in choice.flavors]
        self.parts = {part.value: part for choice in pools for part in choice.parts}
        flavors += [(value, part.name) for value, part in self.parts.items()]
        self._choose("tenant", [(tenant.slug, tenant.name) for tenant in tenants])
        self.offer_images(catalogue, registries)
        self._choose("flavor", [*flavors, (FIND, gettext("Find a GPU"))])
        self._choose("in_pool", [("", gettext("cheapest match")), *_pools_with_gpus()])
        self._choose("compute_capability", [("", gettext("any")), *_capabilities(pools)])
        self._offer_lifetime(self.initial["max_runtime_minutes"])
        if data and (asked := minutes_of(data.get("max_runtime_minutes", ""))):
            self._offer_lifetime(asked)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return {
            "cpu": DEFAULT_CPU_MILLICORES // 1000,
            "memory_gib": DEFAULT_MEMORY_MIB // MIB_PER_GIB,
            "max_runtime_minutes": "",
            "notify": True,
        }

    def _choose(self, name: str, choices: list[tuple[Any, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices
        offered = dict(choices)
        if isinstance(field, forms.MultipleChoiceField):
            self.initial[name] = [key for key in self.initial.get(name) or () if key in offered]
        elif (wanted := self.initial.get(name)) not in offered:
            if wanted:
                self.not_offered[name] = wanted
            self.initial[name] = choices[0][0] if choices else None

    def _offer_lifetime(self, minutes: Any) -> None:
        self._choose("max_runtime_minutes", lifetimes(minutes, self.without_end))

    def lifetime(self, text: str) -> int | None:
        """Return the minutes given in a link, and offer them as a choice. Raise ValidationError if they are invalid."""
        minutes = minutes_of(text)
        if minutes is None:
            raise forms.ValidationError(gettext("Enter minutes, from 1 to 525600."))
        self._offer_lifetime(minutes)
        return minutes

    def untouched(self) -> QueryDict:
        """Return what the form would send if nothing were changed."""
        sent = QueryDict(mutable=True)
        for name in self.fields:
            value = self[name].value()
            if isinstance(value, list):
                sent.setlist(name, value)
            elif value not in {None, False}:
                sent[name] = "on" if value is True else str(value)
        return sent

    @property
    def chosen_flavor(self) -> str | None:
        chosen: str | None = self["flavor"].value()
        return chosen

    @property
    def finds(self) -> bool:
        """True if the form looks for a GPU instead of a ready-made size."""
        return self.chosen_flavor == FIND

    def clean(self) -> dict[str, Any]:
        """Report all faults at once. Fields under "Find me a GPU" count only if that is chosen."""
        cleaned = super().clean() or self.cleaned_data
        self.errors.pop("once", None)  # an invalid token counts as none
        if not self.finds:
            for name in FINDING:
                self.errors.pop(name, None)
        faults = check_env(cleaned.get("env", {}), cleaned.get("secret_env", {}))
        if "name" in cleaned:
            faults |= check_name(cleaned["name"])
        faults |= check_repository(cleaned.get("repository", "")) | self.own_image_faults()
        for name, texts in faults.items():
            self.add_error(name, texts)
        return cleaned

    def size(self) -> SizeAsked:
        """Return the size asked for. The size fields must be valid."""
        data = self.cleaned_data
        if data["flavor"] in self.parts:
            return self.parts[data["flavor"]].size()
        if not self.finds:
            return SizeAsked(flavor=data["flavor"])
        needed = self.needed()
        if not data.get("in_pool") or needed.gpu is None:
            return needed
        memory_mib = needed.gpu.min_memory_mib if needed.gpus is None else None
        return replace(needed, gpu=None, pool=data["in_pool"], gpu_memory_mib=memory_mib)

    def needed(self) -> SizeAsked:
        """Requirements on the GPU that is looked for, whichever pool is chosen."""
        data = self.cleaned_data
        return SizeAsked(
            gpu=GpuAsked(
                min_memory_mib=(data.get("gpu_memory_gb") or 0) * 10**9 // 2**20 or None,
                min_compute_capability=data.get("compute_capability") or None,
                ecc=data.get("ecc") or None,
            ),
            gpus=data.get("gpus"),
            cpu_millicores=round((data.get("cpu") or 0) * 1000) or None,
            memory_mib=(data.get("memory_gib") or 0) * MIB_PER_GIB or None,
        )

    @property
    def volume_rows(self) -> list[choosing.Row]:
        return choosing.rows(self.offers, self["volumes"].value() or ())

    def mounts(self) -> list[MountWish]:
        """Return the volumes that are chosen; where two ways are, that which writes."""
        return choosing.of_choices(self.offers, self.cleaned_data.get("volumes", ()))

    @property
    def name_faults(self) -> list[str]:
        """Faults of the name, for a form that is still filled in: an empty name is none yet."""
        if not self["name"].value():
            return []
        if faults := [str(error) for error in self.errors.get("name", [])]:
            return faults
        return [gettext("Already taken.")] if self.is_taken(self.cleaned_data["name"]) else []

    def is_taken(self, name: str) -> bool:
        """Return True if the person has another of this name."""
        return False

    @property
    def waits_for(self) -> int:
        """Number of others that have to be over before it enters the queue."""
        return 0

    @property
    def several(self) -> int:
        """Number of nodes that it needs at once, each with the size asked for."""
        return 1

    @property
    def own_paths(self) -> list[str]:
        """Paths at which the chosen image has its home."""
        return [self.chosen_image.home] if self.chosen_image else []

    def common(self) -> dict[str, Any]:
        """Fields of a LaunchSpec or JobSpec that a valid form has."""
        data = self.cleaned_data
        same = ("tenant", "name", "connections", "env", "secret_env", "repository", "image_reference")
        return {name: data[name] for name in (*same, "max_runtime_minutes", "notify")} | {
            "image": "" if data["image"] == OWN else data["image"],
            "size": self.size(),
            "volumes": self.mounts(),
        }

    def body(self) -> dict[str, Any]:
        """Body of the API for the same, from the fields that are filled in so far and valid."""
        raise NotImplementedError

    def refuse(self, refusal: Refusal) -> None:
        """Show the faults of a refused launch at their fields."""
        show_refusal(self, refusal, self._called)

    def _called(self, name: str) -> str:
        field = OTHER_NAMES.get(name, name)
        return "flavor" if field in FINDING and not self.finds else field

    @property
    def size_faults(self) -> list[str]:
        """Faults for which there is no forecast."""
        names = ("flavor", *(FINDING if self.finds else ()))
        return [str(error) for name in names for error in self.errors.get(name, [])]

    @property
    def has_folded_errors(self) -> bool:
        return any(self[name].errors for name in self.folded)


# Plainer than Django's messages.
LIMITS = {
    "min_value": _("Enter at least %(limit_value)s."),
    "max_value": _("Enter at most %(limit_value)s."),
    "required": _("Fill this in."),
}


def _pools_with_gpus() -> list[tuple[str, str]]:
    """Open pools with GPUs, also those without ready-made sizes."""
    pools = Pool.objects.filter(is_open=True).exclude(resource_name="")
    return list(pools.order_by("name").values_list("slug", "name"))


def _capabilities(pools: Sequence[PoolChoice]) -> list[tuple[str, str]]:
    """Compute capabilities of the pools, lowest first."""
    known = {choice.pool["gpu"]["compute_capability"] for choice in pools} - {None}
    return [(text, text) for text in sorted(known, key=lambda text: [int(part) for part in text.split(".")])]


def lifetimes(minutes: int | None, without_end: StrOrPromise) -> list[tuple[Any, str]]:
    """Choices of a lifetime: the usual ones, and the present or requested one."""
    offered = sorted(set(LIFETIMES_MINUTES) | ({minutes} if minutes else set()))
    return [("", str(without_end)), *((n, lifetime(n)) for n in offered)]


def minutes_of(text: str) -> int | None:
    """Return a written lifetime in minutes; None if it is not valid."""
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        return None
    return int(text) if 1 <= int(text) <= LONGEST_MINUTES else None
