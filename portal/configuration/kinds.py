"""The kinds, in the order in which they are written: what others refer to comes first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import time
from fractions import Fraction
from typing import Any

from django.db.models import Model, QuerySet
from django.forms import ModelForm, modelform_factory
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import serializers

from accounts import members
from accounts.access import Actor
from accounts.credentials.secrets import Unreadable, decrypt
from accounts.errors import Invalid
from accounts.models import Membership, Role, Tenant, User
from accounts.rest.serializers import StrictSerializer
from clusters.adding import kubeconfigs
from clusters.isolation.deciding import set_without_isolation
from clusters.models import Cluster
from clusters.site import registries
from monitoring.models import IdlePolicy
from portal.configuration.kind import Faulty, Kind, Names
from quotas.admin.pool_form import FlavorForm
from quotas.models import Budget, Flavor, Pool, Quota, TenantLimit
from quotas.pools.opening import set_open
from quotas.scheduling import as_gpus
from workloads.logs.models import LogLimit
from workloads.models import Image

KEPT = registries.KEPT  # a kubeconfig or a password that is stored in Berth, in what is read
ENVIRONMENT = "env:"
OF_FORM = {"pasted": "kubeconfig", "sign_ons": "registries"}  # the admin form of a cluster has other names
# Nothing else of the environment is read.
VARIABLE, PASSWORD_VARIABLE = "BERTH_KUBECONFIG_", "BERTH_REGISTRY_"


class People(Kind):
    """People who can sign in, without their passwords: new ones have none, and use single sign-on or are given one."""

    name, model, key = "people", User, ("username",)
    fields = ("first_name", "last_name", "email", "is_admin")
    special = ("is_admin",)
    can_delete = False

    def shapes(self) -> dict[str, Any]:
        return {**super().shapes(), "is_admin": serializers.BooleanField(required=False)}

    def rows(self) -> QuerySet[Any]:
        return User.objects.filter(is_active=True, service_of=None)

    def value(self, obj: Any, name: str) -> Any:
        return obj.is_staff if name == "is_admin" else super().value(obj, name)

    def save(self, actor: Actor, obj: Any | None, values: Mapping[str, Any], names: Names) -> Any:
        if obj is None and User.objects.filter(username=values["username"]).exists():
            raise Faulty({"username": [_("A deactivated person or a service account has this name.")]})
        return super().save(actor, obj, values, names)

    def bound(self, obj: Any | None, values: Mapping[str, Any], names: Names) -> ModelForm[Any]:
        form = super().bound(obj, values, names)
        if obj is None:
            form.instance.set_unusable_password()
        return form

    @property
    def _form_class(self) -> Any:
        return modelform_factory(User, fields=self.columns)

    def save_special(self, actor: Actor, obj: Any, values: Mapping[str, Any]) -> None:
        wanted = values.get("is_admin", obj.is_staff)
        if wanted != obj.is_staff:
            members.set_admin(actor, obj, is_admin=wanted)
            obj.is_staff = wanted


class RegistrySerializer(StrictSerializer):
    """A sign-on to a registry of images, with which pods of people pull theirs."""

    host = serializers.RegexField(r"\A\S+\Z", max_length=255)
    username = serializers.RegexField(r"\A\S+\Z", max_length=registries.LONGEST)
    password = serializers.RegexField(
        r"\A\S(.*\S)?\Z",
        max_length=registries.LONGEST,
        trim_whitespace=False,
        help_text=gettext_lazy(
            "Or a token. It is never answered. “env:BERTH_REGISTRY_…” takes that variable of the server, and is the "
            "way of a file; “kept” leaves what is stored."
        ),
    )

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Demand each field: in a change, which may leave out fields of a cluster, DRF would let these be absent."""
        if missing := self.fields.keys() - values.keys():
            raise serializers.ValidationError({name: _("This field is required.") for name in missing})
        return values


class Clusters(Kind):
    name, model = "clusters", Cluster
    fields = (
        "name", "connection", "kubeconfig_path", "kubeconfig", "context", "exposure", "node_address",
        "ssh_service_port", "keeps_addresses", "prometheus_url", "prometheus_token_path", "home_class", "home_mib",
        "disk_class", "dataset_class", "shared_classes", "registries", "image_pull_secrets", "validation_image",
        "files_image", "files_uid", "http_proxy", "https_proxy", "no_proxy", "pod_environment",
        "trusted_certificates", "pod_cidrs", "service_cidrs", "api_cidrs",
        "denied_cidrs", "allowed_cidrs", "metrics_namespace", "without_isolation",
    )  # fmt: skip
    special = ("kubeconfig", "registries", "without_isolation")

    def shapes(self) -> dict[str, Any]:
        text = gettext_lazy(
            "A kubeconfig to keep, encrypted; it is never answered. “env:BERTH_KUBECONFIG_…” takes that variable "
            "of the server, and is the way of a file; “kept” leaves what is stored."
        )
        own = {
            "kubeconfig": serializers.CharField(
                required=False, allow_null=True, max_length=kubeconfigs.LONGEST, help_text=text
            ),
            "registries": serializers.ListField(
                child=RegistrySerializer(), required=False, max_length=registries.MOST
            ),
            "without_isolation": serializers.BooleanField(required=False),
        }
        return {name: field for name, field in (super().shapes() | own).items() if name in self.all_fields}

    def value(self, obj: Any, name: str) -> Any:
        if name == "kubeconfig":
            return KEPT if obj.kubeconfig else None
        if name == "registries":
            known = registries.known(obj)
            return [{"host": one.host, "username": one.username, "password": KEPT} for one in known]
        return super().value(obj, name)

    def bound(self, obj: Any | None, values: Mapping[str, Any], names: Names) -> ModelForm[Any]:
        form = super().bound(obj, values, names)
        wanted = values.get("registries", self.value(obj or Cluster(), "registries"))
        given = values.get("kubeconfig")
        if given and given != KEPT:
            text = environment(given) if given.startswith(ENVIRONMENT) else given
            if not (obj and is_stored(obj, text, form.data.get("context", ""))):
                form.data = {**form.data, "pasted": text}
        form.data = {**form.data, "sign_ons": sign_ons(obj, wanted)}
        return form

    def faults_of(self, form: ModelForm[Any]) -> Faulty:
        fields = dict(super().faults_of(form).fields)
        return Faulty({OF_FORM.get(name, name): texts for name, texts in fields.items()})

    def save_special(self, actor: Actor, obj: Any, values: Mapping[str, Any]) -> None:
        if "without_isolation" in values:
            set_without_isolation(actor, obj, without=values["without_isolation"])
            obj.without_isolation = values["without_isolation"]


def environment(reference: str, field: str = "kubeconfig", start: str = VARIABLE) -> str:
    """Return the secret in a variable of this process. Raise Faulty if it may not be read, or is empty."""
    name = reference.removeprefix(ENVIRONMENT)
    if not name.startswith(start):
        raise Faulty({field: [_("Name a variable whose name begins with %(start)s.") % {"start": start}]})
    if not (text := os.environ.get(name, "")):
        raise Faulty({field: [_("The server has no variable of this name.")]})
    return text


def sign_ons(cluster: Cluster | None, given: Sequence[Mapping[str, str]]) -> str:
    """Return the sign-ons of a request as lines of the form. A password that is stored already is no change."""
    stored = registries.known(cluster) if cluster else []
    lines = []
    for one in given:
        host, username, password = one["host"], one["username"], one["password"]
        if password.startswith(ENVIRONMENT):
            password = environment(password, "registries", PASSWORD_VARIABLE)
        if registries.SignOn(host, username, password) in stored:
            password = KEPT
        lines.append(f"{host} {username} {password}")
    return "\n".join(lines)


def is_stored(cluster: Cluster, text: str, context: str) -> bool:
    """Return True if this kubeconfig is what the cluster has already."""
    try:
        return bool(cluster.kubeconfig) and decrypt(cluster.kubeconfig) == kubeconfigs.kept(text, context)
    except (Invalid, Unreadable):
        return False  # the form says what is wrong


class Pools(Kind):
    name, model = "pools", Pool
    fields = (
        "name", "cluster", "match_product", "match_gpu_memory_mib", "match_compute_capability", "match_ecc",
        "node_labels", "tolerations", "sharing", "resource_name", "units_per_gpu", "mig_profile", "one_unit_each",
        "gpu_product", "gpu_memory_mib", "unit_memory_mib", "compute_capability", "ecc", "weight", "runtime_class",
        "extra_resources", "image_pull_secrets", "driver_path", "cpu_overcommit", "memory_overcommit", "is_open",
    )  # fmt: skip
    special = ("is_open",)

    def shapes(self) -> dict[str, Any]:
        text = gettext_lazy("If out of use, nothing new starts here.")
        return {**super().shapes(), "is_open": serializers.BooleanField(required=False, help_text=text)}

    def save_special(self, actor: Actor, obj: Any, values: Mapping[str, Any]) -> None:
        if "is_open" in values:
            set_open(actor, obj, is_open=values["is_open"])
            obj.is_open = values["is_open"]


class Flavors(Kind):
    name, model, form = "flavors", Flavor, FlavorForm
    fields = ("name", "pool", "gpus", "cpu", "memory_mib")
    renamed = {"units": "gpus", "cpu_millicores": "cpu"}

    def shapes(self) -> dict[str, Any]:
        gpus = serializers.FloatField(min_value=0, max_value=100_000, required=False)
        cpu = serializers.FloatField(min_value=0, max_value=1_000_000, help_text=gettext_lazy("Cores."))
        return {**super().shapes(), "gpus": gpus, "cpu": cpu}

    def value(self, obj: Any, name: str) -> Any:
        if name == "gpus":
            return as_gpus(obj.units, obj.pool.units_per_gpu) if obj.pool_id and obj.units else 0
        if name == "cpu":
            return as_gpus(obj.cpu_millicores, 1000) if obj.cpu_millicores is not None else None
        return super().value(obj, name)

    def cells(self, values: Mapping[str, Any], names: Names) -> dict[str, Any]:
        cells = super().cells(values, names)
        cpu, gpus, pool = values.get("cpu"), values.get("gpus") or 0, cells["pool"]
        cells["cpu_millicores"] = None if cpu is None else whole("cpu", cpu, 1000)
        cells["units"] = whole("gpus", gpus, pool.units_per_gpu) if pool else 0
        return cells


def whole(name: str, amount: float, per: int) -> int:
    """Return the smaller units in an amount of at most four digits after the point, as `as_gpus` writes it."""
    units = Fraction(str(amount)) * per
    nearest = round(units)
    if as_gpus(nearest, per) != round(float(amount), 4):
        raise Faulty({name: [_("Use a multiple of %(part)s.") % {"part": as_gpus(1, per)}]})
    return nearest


class Images(Kind):
    """Images of the catalogue. Those by reference belong to what runs them."""

    name, model = "images", Image
    fields = (
        "name", "description", "reference", "version", "cuda_version", "frameworks", "least_driver",
        "offers_jupyter", "offers_ssh", "has_code_server", "uid", "gid", "username", "home", "shell", "is_active",
    )  # fmt: skip

    def rows(self) -> QuerySet[Any]:
        return super().rows().filter(tenant=None)


class Tenants(Kind):
    name, model = "tenants", Tenant
    fields = ("name",)


class Memberships(Kind):
    """Roles that an admin or an owner gave. Those of single sign-on groups follow the groups."""

    name, model, key = "memberships", Membership, ("tenant", "user")
    fields = ("role",)

    def rows(self) -> QuerySet[Any]:
        return super().rows().filter(by_group=False, user__is_active=True, user__service_of=None)

    def save(self, actor: Actor, obj: Any | None, values: Mapping[str, Any], names: Names) -> Any:
        cells = self.cells(values, names)
        role = values.get("role") or (obj.role if obj else Role.MEMBER)
        return members.set_role(actor, cells["tenant"], cells["user"].username, role)

    def rank(self, values: Mapping[str, Any]) -> int:
        return int(values.get("role") != Role.OWNER)  # the last owner goes once there is another

    def delete(self, actor: Actor, obj: Any) -> None:
        members.remove(actor, obj.tenant, obj.user.username)


class Quotas(Kind):
    name, model, key = "quotas", Quota, ("tenant", "pool")
    fields = ("nominal_gpus", "borrowing_limit_gpus", "weight")


class Limits(Kind):
    name, model, key = "limits", TenantLimit, ("tenant",)
    fields = (
        "cpu_millicores", "memory_mib", "workspaces", "storage_mib", "homes_mib", "disks_mib", "datasets_mib",
        "longest_runtime_minutes", "person_gpus", "person_workspaces", "person_storage_mib", "image_prefixes",
    )  # fmt: skip


class LogLimits(Kind):
    name, model, key = "log_limits", LogLimit, ("tenant",)
    fields = ("days", "size_mib")

    @property
    def page_model(self) -> type[Model]:
        return Tenant


class Budgets(Kind):
    """GPU-hours of a calendar month: of a tenant, or with `user` of one person in it."""

    name, model, key = "budgets", Budget, ("tenant", "user")
    fields = ("gpu_hours", "grace_minutes")


class IdlePolicies(Kind):
    """When idle workspaces with GPUs are stopped: of a tenant in a pool; without either, of all."""

    name, model, key = "idle_policies", IdlePolicy, ("tenant", "pool")
    fields = (
        "is_active", "minutes", "warning_minutes", "gpu_percent", "cpu_cores", "night_minutes", "night_from",
        "night_until", "time_zone", "waiting_minutes",
    )  # fmt: skip

    def shapes(self) -> dict[str, Any]:
        text = gettext_lazy("A time of day, as 22:00.")
        times = {
            name: serializers.CharField(required=False, allow_null=True, max_length=8, help_text=text)
            for name in ("night_from", "night_until")
        }
        return super().shapes() | times

    def value(self, obj: Any, name: str) -> Any:
        value = super().value(obj, name)
        return f"{value:%H:%M:%S}".removesuffix(":00") if isinstance(value, time) else value


KINDS: tuple[Kind, ...] = (
    People(), Clusters(), Pools(), Flavors(), Images(), Tenants(), Memberships(), Quotas(), Limits(), LogLimits(),
    Budgets(), IdlePolicies(),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
