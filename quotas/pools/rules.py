"""Rules for a pool's settings: formats, contradictions, and needs of its way of sharing. Pure; words for admins.

The same rules run before a pool is saved in the admin and before its nodes are previewed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from clusters.nodes.node_labels import PRODUCT
from clusters.own_place import is_inside
from quotas import sharing
from quotas.models import Pool
from quotas.pools.selection import CAPABILITY

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
DOMAIN = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
LABEL = re.compile(rf"(?:{DOMAIN}/)?{NAME}")
LABEL_VALUE = re.compile(rf"(?:{NAME})?")
RESOURCE = re.compile(rf"{DOMAIN}/{NAME}")
OBJECT = re.compile(DOMAIN)
PROFILE = re.compile(r"[1-9]g\.[0-9]+gb(?:[.+-]me)?")
TOLERATION_FIELDS = {"key", "operator", "value", "effect", "tolerationSeconds"}
# Of a resource beside GPUs, for each GPU.
MOST = 1000
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# Data of the node and of other people: no folder in these, or above one of them, is a driver's.
NO_DRIVER_IN = (
    "/boot", "/dev", "/etc", "/proc", "/root", "/sys", "/var/lib/kubelet", "/var/lib/containerd",
    "/var/lib/docker", "/var/lib/etcd", "/var/lib/rancher", "/var/log", "/run/containerd", "/var/run/containerd",
    "/run/secrets", "/var/run/secrets",
)  # fmt: skip

Faults = dict[str, list[str]]


def faults(pool: Pool) -> Faults:
    """Return sentences by field; empty: the pool may be saved."""
    found: Faults = {}
    for field, text in _all(pool):
        found.setdefault(field, []).append(text)
    return found


def _all(pool: Pool) -> Iterator[tuple[str, str]]:
    yield from _nodes(pool)
    yield from _pods(pool)
    for field in ("compute_capability", "match_compute_capability"):
        if getattr(pool, field) and not CAPABILITY.match(getattr(pool, field)):
            yield field, _("Use a format like 8.6: two numbers with a dot between.")
    if pool.resource_name and not RESOURCE.fullmatch(pool.resource_name):
        yield "resource_name", _("Write it as nvidia.com/gpu or amd.com/gpu: as the nodes announce it.")
    yield from _extra(pool)
    if pool.mig_profile and not PROFILE.fullmatch(pool.mig_profile):
        yield "mig_profile", _("Write it as 1g.10gb.")
    yield from _contradictions(pool)
    yield from sharing.of(pool).faults(pool).items()


def _nodes(pool: Pool) -> Iterator[tuple[str, str]]:
    labels = pool.node_labels
    if not isinstance(labels, dict):
        yield "node_labels", _('Write labels as {"name": "value"}.')
        return
    for key, value in labels.items():
        name = str(key).rpartition("/")[2]
        if not LABEL.fullmatch(key) or len(name) > 63:
            yield "node_labels", _("“%(name)s” is not a valid label name.") % {"name": key}
        if not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
            text = _('The value of %(name)s is not a valid label value. Values are text, such as "true".')
            yield "node_labels", text % {"name": key}
    if pool.match_product and not LABEL_VALUE.fullmatch(pool.match_product):
        yield "match_product", _("Write it as the nodes' label has it: with dashes in the place of spaces.")
    if pool.match_product and PRODUCT in labels:
        yield "match_product", _("The node labels say the product already. Leave one of the two out.")


def _pods(pool: Pool) -> Iterator[tuple[str, str]]:
    tolerations = pool.tolerations if isinstance(pool.tolerations, list) else [None]
    for toleration in tolerations:
        if text := toleration_fault(toleration):
            yield "tolerations", text
    secrets = pool.image_pull_secrets if isinstance(pool.image_pull_secrets, list) else [None]
    if not all(isinstance(name, str) and OBJECT.fullmatch(name) and len(name) <= 253 for name in secrets):
        yield "image_pull_secrets", _('Write names of Secrets as in ["registry", "mirror"].')
    if pool.runtime_class and not OBJECT.fullmatch(pool.runtime_class):
        yield "runtime_class", _("Not a name of a RuntimeClass, as in nvidia.")
    if pool.driver_path and (text := path_fault(pool.driver_path) or admission_fault(pool)):
        yield "driver_path", text


def _extra(pool: Pool) -> Iterator[tuple[str, str]]:
    extra = pool.extra_resources
    is_valid = isinstance(extra, dict) and all(
        type(count) is int and 1 <= count <= MOST for count in extra.values()
    )
    if not is_valid:
        text = _('Write them as {"rdma/hca": 1}: a name, and how many for each GPU, 1 to %(most)d.')
        yield "extra_resources", text % {"most": MOST}
        return
    for name in extra:
        if not RESOURCE.fullmatch(name) or name == pool.resource_name:
            text = _(
                "“%(name)s” is not the name of an extended resource beside the pool's own, as in rdma/hca."
            )
            yield "extra_resources", text % {"name": name}


def toleration_fault(toleration: Any) -> str:
    if not isinstance(toleration, Mapping) or not _is_of_texts(toleration):
        return _('Write tolerations as [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}].')
    if unknown := sorted(toleration.keys() - TOLERATION_FIELDS):
        return _("A toleration has no “%(name)s”.") % {"name": unknown[0]}
    operator, key, value = (toleration.get(name) for name in ("operator", "key", "value"))
    if operator not in (None, "", "Equal", "Exists"):
        return _("The operator of a toleration is Equal or Exists.")
    if toleration.get("effect") not in (None, "", *EFFECTS):
        return _("The effect of a toleration is one of %(effects)s.") % {"effects": ", ".join(EFFECTS)}
    if not key and operator != "Exists":
        return _("A toleration without a key needs the operator Exists.")
    if operator == "Exists" and value:
        return _("A toleration with Exists has no value.")
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        return _("tolerationSeconds goes with the effect NoExecute alone.")
    return ""


def _is_of_texts(toleration: Mapping[Any, Any]) -> bool:
    """Return True if all values are valid. Kubernetes would refuse others only in each pod."""
    texts = {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
    return (
        all(isinstance(text, str) for pair in texts.items() for text in pair)
        and (not texts.get("key") or LABEL.fullmatch(texts["key"]) is not None)
        and LABEL_VALUE.fullmatch(texts.get("value", "")) is not None
        and type(toleration.get("tolerationSeconds", 0)) is int
    )


def path_fault(path: str) -> str:
    parts = path.split("/")
    if not path.startswith("/") or any(part in ("", ".", "..") for part in parts[1:]):
        return _("Write the whole path, as in /opt/nvidia/driver, without . or .. in it.")
    if len(parts) < 3 or any(within(path, place) or within(place, path) for place in NO_DRIVER_IN):
        return _("All workspaces of the pool could read this folder of the node. Name the driver's own.")
    return ""


def admission_fault(pool: Pool) -> str:
    """Return a sentence if deploy/kubernetes/admission.yaml would refuse volumes of the driver's folder."""
    folders = settings.DRIVER_FOLDERS if is_inside(pool.cluster) else []
    if not folders or any(within(pool.driver_path, folder) for folder in folders):
        return ""
    text = _(
        "The cluster's policies let Berth use only folders in %(folders)s. Use one of these, or add yours: "
        "driverFolders in the chart's values."
    )
    return text % {"folders": ", ".join(folders)}


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _contradictions(pool: Pool) -> Iterator[tuple[str, str]]:
    if not pool.has_gpus:
        return
    if pool.mig_profile and not sharing.of(pool).is_instance:
        yield "mig_profile", _("Only pools of MIG instances have a profile.")
    if pool.one_unit_each and pool.units_per_gpu == 1:
        yield "one_unit_each", _("This is for GPUs that are cut: whole ones are asked for as needed.")
    if pool.match_ecc is not None and pool.ecc is not None and pool.match_ecc != pool.ecc:
        yield "ecc", _("The pool chooses its nodes by the opposite. Make both the same, or leave one empty.")
    if pool.unit_memory_mib and pool.gpu_memory_mib and pool.unit_memory_mib > pool.gpu_memory_mib:
        yield "unit_memory_mib", _("A unit has no more memory than its GPU.")
