"""Short forms of the first-run guide. What they show first is what was found; use cases check the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Invalid
from accounts.forms import show_refusal
from accounts.models import Role, valid_slug
from accounts.text import visible
from clusters.adding import kubeconfigs
from clusters.models import Cluster
from quotas.models import Pool
from quotas.pools.planning import PoolPlan, free_slug
from workloads.models import Image

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
LONGEST_SLUG = 40
MOST_PEOPLE = 100
LONGEST_LIST = 20_000
MOST_GPUS = 100_000


def unused_slug(name: str, taken: set[str], otherwise: str) -> str:
    """Return a slug made of the name, or of another word if the name has no letter of a slug."""
    return free_slug(slugify(name)[:LONGEST_SLUG].strip("-") or otherwise, taken)


class ClusterForm(forms.Form):
    """Way in which Berth reaches a cluster. Once it is saved, nobody can read the kubeconfig again."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=120, initial="Kubernetes", validators=[visible]
    )
    connection = forms.ChoiceField(label=gettext_lazy("Connection"), widget=forms.RadioSelect)
    kubeconfig = forms.CharField(
        label=gettext_lazy("Kubeconfig"),
        required=False,
        max_length=kubeconfigs.LONGEST,
        help_text=gettext_lazy(
            "Paste what “kubectl config view --raw --flatten --minify” prints. Berth keeps it encrypted."
        ),
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocomplete": "off"}),
    )
    context = forms.CharField(
        label=gettext_lazy("Context"),
        required=False,
        max_length=253,
        help_text=gettext_lazy("Empty: the current one."),
    )
    anyway = forms.BooleanField(
        label=gettext_lazy("Save it although rights are missing: I will grant them"), required=False
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        pasted = (Cluster.Connection.PASTED.value, _("with a kubeconfig that I paste"))
        inside = (Cluster.Connection.IN_CLUSTER.value, _("the cluster that Berth runs in"))
        choice = self.fields["connection"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [inside, pasted] if SERVICE_ACCOUNT.exists() else [pasted]
        choice.initial = choice.choices[0][0]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("connection") == Cluster.Connection.PASTED and "kubeconfig" not in self.errors:
            if not cleaned.get("kubeconfig"):
                self.add_error("kubeconfig", _("Paste the kubeconfig."))
                return cleaned
            try:
                cleaned["sealed"] = kubeconfigs.sealed(cleaned["kubeconfig"], cleaned.get("context", ""))
            except Invalid as refusal:
                show_refusal(self, refusal)
        return cleaned

    def cluster(self) -> Cluster:
        """Return the cluster, not saved."""
        cleaned = self.cleaned_data
        slug = unused_slug(cleaned["name"], set(Cluster.objects.values_list("slug", flat=True)), "cluster")
        return Cluster(
            slug=slug,
            name=cleaned["name"],
            connection=cleaned["connection"],
            kubeconfig=cleaned.get("sealed", ""),
        )


class IsolationForm(forms.ModelForm[Cluster]):
    """The networks that a cluster did not tell, or the word that it runs without isolation."""

    without = forms.BooleanField(
        label=gettext_lazy(
            "Run without isolation: workspaces of different teams may reach each other and the cluster."
        ),
        required=False,
    )

    class Meta:
        model = Cluster
        fields = ("pod_cidrs", "service_cidrs", "api_cidrs")

    def __init__(self, missing: Sequence[str], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("pod_cidrs", "service_cidrs", "api_cidrs"):
            if name in missing:
                self.fields[name].help_text = _("As in 10.42.0.0/16; several with commas between.")
            else:
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("without"):
            for name in self.fields:
                if name != "without" and name not in self.errors and not cleaned.get(name):
                    self.add_error(name, _("Fill it in, or run without isolation."))
        return cleaned


class PoolsForm(forms.Form):
    """Choice of the planned pools to make: all of them, unless somebody unticks one."""

    pools = forms.MultipleChoiceField(label=gettext_lazy("Pools"), widget=forms.CheckboxSelectMultiple)

    def __init__(self, plans: Sequence[PoolPlan], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.plans = {plan.slug: plan for plan in plans}
        choice = self.fields["pools"]
        assert isinstance(choice, forms.MultipleChoiceField)
        choice.choices = [(plan.slug, plan.name) for plan in plans]
        choice.initial = list(self.plans)
        choice.error_messages["required"] = _("Choose at least one.")

    def boxes(self) -> list[tuple[Any, PoolPlan]]:
        return [(box, self.plans[box.data["value"]]) for box in self["pools"]]

    def chosen(self) -> list[PoolPlan]:
        return [self.plans[slug] for slug in self.cleaned_data["pools"]]


class TenantForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=120, initial=gettext_lazy("Research"), validators=[visible]
    )
    slug = forms.CharField(
        label=gettext_lazy("Slug"),
        max_length=LONGEST_SLUG,
        initial="research",
        validators=[valid_slug],
        help_text=gettext_lazy(
            "Short, for addresses, scripts and the namespaces in clusters. It never changes."
        ),
    )
    people = forms.CharField(
        label=gettext_lazy("People"),
        max_length=LONGEST_LIST,
        help_text=gettext_lazy(
            "One per line: a user name, and owner, member or viewer after a comma. They need an account: add many at "
            "once under “People” in the admin."
        ),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"}),
    )

    def __init__(self, pools: Sequence[tuple[Pool, int]], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pools = {f"gpus-{pool.slug}": pool for pool, _gpus in pools}
        for pool, gpus in pools:
            self.fields[f"gpus-{pool.slug}"] = forms.IntegerField(
                label=_("GPUs of %(pool)s") % {"pool": pool.name},
                min_value=0,
                max_value=MOST_GPUS,
                initial=gpus,
                help_text=_("The pool has %(gpus)d.") % {"gpus": gpus},
            )

    def clean_people(self) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["people"].splitlines(), start=1):
            name, _comma, role = (part.strip() for part in line.partition(","))
            if not name:
                continue
            if (role := role.lower() or Role.MEMBER) not in Role.values:
                text = _("Line %(n)d: “%(role)s” is not a role. Use owner, member or viewer.")
                raise forms.ValidationError(text % {"n": number, "role": role[:40]})
            found[name] = role
        if len(found) > MOST_PEOPLE:
            raise forms.ValidationError(_("At most %(most)d at once.") % {"most": MOST_PEOPLE})
        return list(found.items())

    def quotas(self) -> list[tuple[Pool, int]]:
        return [(pool, self.cleaned_data[name]) for name, pool in self.pools.items()]


class ImageForm(forms.ModelForm[Image]):
    class Meta:
        model = Image
        fields = ("name", "reference", "uid", "gid", "username", "home", "shell")

    OFTEN = ("name", "reference")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["name"].initial = "JupyterLab"
        self.fields["reference"].initial = os.environ.get("BERTH_WORKSPACE_IMAGE", "")
        self.fields["reference"].help_text = _(
            "As the cluster pulls it: registry.example/team/workspace:1. deploy/images/workspace builds one with "
            "JupyterLab and SSH."
        )
        for name in ("uid", "gid"):
            self.fields[name].min_value = 1  # type: ignore[attr-defined]

    def often(self) -> list[Any]:
        return [self[name] for name in self.OFTEN]

    def rarely(self) -> list[Any]:
        return [self[name] for name in self.fields if name not in self.OFTEN]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in ("uid", "gid"):
            if cleaned.get(name) == 0:
                self.add_error(name, _("Never root: 1 or more."))
        taken = set(Image.objects.values_list("slug", flat=True))
        self.instance.slug = unused_slug(cleaned.get("name", ""), taken, "image")
        return cleaned
