"""Admin form of a pool: `quotas/pools/rules.py` validates it, and its nodes can be shown before it is saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.admin.labels import LabelledInlineRows
from accounts.errors import Invalid
from clusters.models import Node
from clusters.nodes.node_labels import PRODUCT
from quotas import sharing
from quotas.models import Flavor, Pool
from quotas.pools import bad_gpus, selection
from quotas.pools.bad_gpus import Bad
from quotas.pools.health import Trouble, broken_units, trouble_of
from quotas.pools.nodes import offered_units
from quotas.pools.rules import faults
from quotas.scheduling import as_gpus

WITHOUT_VALUE: dict[str, Any] = {
    "node_labels": {},
    "tolerations": [],
    "image_pull_secrets": [],
    "extra_resources": {},
}

EXAMPLES = {
    "node_labels": '{"zone": "a"}',
    "tolerations": '[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]',
    "image_pull_secrets": '["registry"]',
    "extra_resources": '{"rdma/hca": 1}',
}


class PoolForm(forms.ModelForm[Pool]):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, example in EXAMPLES.items():
            self.fields[name].widget.attrs |= {"rows": 3, "spellcheck": "false"}
            as_in = _("As in %(example)s.") % {"example": example}
            self.fields[name].help_text = f"{self.fields[name].help_text} {as_in}".strip()
        self.fields["match_gpu_memory_mib"].help_text = _(
            "GPUs report less than they are sold as: 79 finds cards of 80 GB, 39 those of 40 GB, 22 those of 24 GB."
        )
        if products := sorted(known_products()):
            text = _("As GPU Feature Discovery names it. There are: %(names)s.")
            self.fields["match_product"].help_text = text % {"names": _(", ").join(products)}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name, empty in WITHOUT_VALUE.items():
            if cleaned.get(name, empty) is None:
                cleaned[name] = copy(empty)
        described = copy(self.instance)
        for field in Pool._meta.fields:
            if field.name in cleaned:
                setattr(described, field.name, cleaned[field.name])
        if not self.errors:  # else a field has no value yet
            for name, texts in faults(described).items():
                self.add_error(name if name in self.fields else None, texts)
        return cleaned


class FlavorForm(forms.ModelForm[Flavor]):
    """Form of a size, checked against its pool as about to be saved."""

    def clean_units(self) -> int:
        units: int = self.cleaned_data["units"]
        # On the page of its pool there is no choice: the row has its pool already.
        pool = self.cleaned_data.get("pool") or getattr(self.instance, "pool", None)
        if units and pool is not None:
            try:
                sharing.of(pool).portion(pool, pool.gpus(units), None)
            except Invalid as refusal:
                raise forms.ValidationError(next(iter(refusal.fields.values()))) from None
        return units


class FlavorRows(LabelledInlineRows):
    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        form.instance.pool = self.instance


def known_products() -> set[str]:
    """Products in all clusters, without the suffix by which GPU Feature Discovery marks how a GPU is cut."""
    labels = Node.objects.values_list(f"labels__{PRODUCT}", flat=True).distinct()
    return {selection.plain_product(product) for product in labels if product}


@dataclass(frozen=True)
class NodeLine:
    name: str
    gpus: float
    words: str


TROUBLES = {
    Trouble.NONE: "",
    Trouble.NOT_READY: gettext_lazy("not ready"),
    Trouble.CORDONED: gettext_lazy("cordoned"),
    Trouble.UNWELL: gettext_lazy("out of use: it, or one of its GPUs, does not work"),
    Trouble.TAINTED: gettext_lazy("tainted: the pool does not tolerate it"),
}


def lines(pool: Pool) -> list[NodeLine]:
    """Return the pool's nodes as last seen, with the GPUs and the problems of each."""
    nodes = selection.members(pool, Node.objects.filter(cluster=pool.cluster_id))
    bad = bad_gpus.read([pool.cluster_id])
    return [
        NodeLine(
            node.name,
            as_gpus(offered_units(node, pool), pool.units_per_gpu),
            _(", ").join(filter(None, _problems(node, pool, bad.get((node.cluster_id, node.name), ())))),
        )
        for node in nodes
    ]


def _problems(node: Node, pool: Pool, bad: Sequence[Bad]) -> Iterable[str]:
    yield str(TROUBLES[trouble_of(node, pool, bad)])
    if not pool.has_gpus:
        return
    if broken := broken_units(node, pool, bad):
        count = -(-broken // pool.units_per_gpu)
        yield ngettext("%(n)d GPU broken", "%(n)d GPUs broken", count) % {"n": count}
    elif not offered_units(node, pool):
        yield _("it does not announce %(resource)s") % {"resource": pool.resource_name}


def summary(pool: Pool, nodes: Sequence[NodeLine]) -> str:
    if not nodes:
        return _("No node belongs to it now, so nothing would start there.")
    text = ngettext("%(n)d node belongs to it now", "%(n)d nodes belong to it now", len(nodes))
    count = text % {"n": len(nodes)}
    if not pool.has_gpus:
        return f"{count}."
    gpus = sum(line.gpus for line in nodes)
    return _("%(nodes)s, with %(gpus)g GPUs.") % {"nodes": count, "gpus": gpus}
