"""Fields of a job's form about several nodes, the jobs before it, and data: folded, as few jobs need them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.api.serializers import MOST_NODES, MOST_PROCESSES
from jobs.models import Framework, Job, On
from jobs.runs import following, publishing
from jobs.runs.following import After
from jobs.submit import Distributed
from storage.models import LATEST
from storage.mounts import choosing
from storage.mounts.mounting import MountWish
from workloads.models import Exposition
from workloads.pages.bodies import filled
from workloads.pages.fields import plain_text
from workloads.pages.forms import WorkloadForm
from workloads.pages.lists import uuids
from workloads.serializers import LONGEST_METRICS_PATH, ExpositionBody

NODES = ("framework", "nodes", "processes_per_node", "checkpoints")
ORDER = ("after", "after_on", "writes", "metrics_port", "metrics_path")
CONNECTED = (*NODES, *ORDER)
# Names in refusals, where the form's field is called otherwise.
CALLED = {"distributed": "nodes", "metrics": "metrics_port"}

USUAL_PATH = "/metrics"
# Values of fields that a folded section need not show.
USUAL = ("", "1", "None", "[]", On.SUCCESS.value, USUAL_PATH)


class ConnectedForm(WorkloadForm):
    """A workload's form with the fields that connect a job with others."""

    framework = forms.ChoiceField(
        label=_("Distributed training"),
        required=False,
        choices=[
            ("", _("No: one program on one node")),
            (Framework.TORCHRUN, _("torchrun starts the processes")),
            (Framework.RANKS, _("The command starts once for each rank")),
        ],
        help_text=_("With torchrun, the command begins with your script, such as train.py."),
    )
    nodes = forms.IntegerField(
        label=_("Nodes"),
        required=False,
        min_value=1,
        max_value=MOST_NODES,
        help_text=_("Each has the size above. They start together."),
    )
    processes_per_node = forms.IntegerField(
        label=_("Processes per node"),
        required=False,
        min_value=1,
        max_value=MOST_PROCESSES,
        help_text=_("Usually one for each GPU."),
    )
    checkpoints = forms.TypedChoiceField(
        label=_("Checkpoints"),
        required=False,
        coerce=uuid.UUID,
        empty_value=None,
        help_text=_("BERTH_CHECKPOINT_DIR is there. Mount the volume too, to read and write."),
    )
    after = forms.TypedMultipleChoiceField(
        label=_("Start after"),
        required=False,
        coerce=uuid.UUID,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("It enters the queue once these jobs are over."),
    )
    after_on = forms.ChoiceField(
        label=_("Start once"),
        required=False,
        choices=[(On.SUCCESS, _("They have succeeded")), (On.END, _("They are over, failed or not"))],
    )
    writes = forms.TypedChoiceField(
        label=_("Writes dataset"),
        required=False,
        coerce=uuid.UUID,
        empty_value=None,
        help_text=_("It is mounted to write. Success publishes a new version."),
    )
    metrics_port = forms.IntegerField(
        label=_("Metrics port"), required=False, help_text=_("Where your program serves Prometheus metrics.")
    )
    metrics_path = forms.CharField(
        label=_("Metrics path"),
        required=False,
        max_length=LONGEST_METRICS_PATH,
        widget=plain_text(placeholder=USUAL_PATH),
    )

    def __init__(self, data: Any, initial: dict[str, Any], **options: Any) -> None:
        named = data.getlist("after") if data else initial.get("after") or ()
        jobs = following.candidates(options["actor"], options["tenants"], uuids(named))
        self.unfinished = {job.pk for job in jobs if job.ended_at is None}
        self.writers = {job.pk: job.writes_id for job in jobs if job.writes_id}
        options["volumes"] = choosing.with_latest(options["volumes"], self.writers.values())
        super().__init__(data, initial, **options)
        writable = {one.wish.volume: one.name for one in self.offers.values() if not one.wish.read_only}
        self._choose(
            "checkpoints",
            [("", gettext("In your home")), *((str(pk), name) for pk, name in writable.items())],
        )
        datasets = publishing.candidates(self.actor, self.tenants)
        self._choose("writes", [("", gettext("No dataset")), *((str(one.pk), one.name) for one in datasets)])
        self._choose("after", [(str(job.pk), self._about(job)) for job in jobs])

    def _about(self, job: Job) -> str:
        tenant = [job.tenant.name] if len(self.tenants) > 1 else []
        return " · ".join([job.name, str(job.get_phase_display()), *tenant])

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        few = {"framework": "", "nodes": 1, "processes_per_node": 1, "after_on": On.SUCCESS.value}
        return super().defaults() | few

    @property
    def opens_nodes(self) -> bool:
        return self._says(NODES)

    @property
    def opens_order(self) -> bool:
        return self._says(ORDER)

    def _says(self, names: Iterable[str]) -> bool:
        """Return True if one of the fields has a fault, or another value than usual."""
        return any(self[name].errors or str(self[name].value()) not in USUAL for name in names)

    @property
    def several(self) -> int:
        return self.cleaned_data.get("nodes") or 1

    @property
    def waits_for(self) -> int:
        return len(self.unfinished.intersection(self.cleaned_data.get("after") or ()))

    def mounts(self) -> list[MountWish]:
        """Return the chosen volumes, also with versions still to come, and the dataset that it writes."""
        promised = {self.writers.get(job) for job in self.cleaned_data.get("after") or ()}
        chosen = [
            replace(wish, is_promised=wish.version == LATEST and wish.volume in promised)
            for wish in super().mounts()
        ]
        dataset = self.cleaned_data.get("writes")
        if dataset is None or any(wish.volume == dataset for wish in chosen):
            return chosen
        offered = (offer.wish for offer in self.offers.values())
        own = [wish for wish in offered if wish.volume == dataset and not wish.read_only]
        return [*chosen, *own]

    def clean(self) -> dict[str, Any]:
        """Refuse several processes that are told nothing of each other, and a place of metrics that is none."""
        cleaned = super().clean()
        several = (cleaned.get("nodes") or 1) > 1 or (cleaned.get("processes_per_node") or 1) > 1
        if several and "framework" in cleaned and not cleaned["framework"]:
            self.add_error(
                "framework", gettext("Choose how the processes start, or set 1 node and 1 process.")
            )
        if place := self._metrics():
            body = ExpositionBody(data=place)
            if not body.is_valid():
                for name, texts in body.errors.items():
                    self.add_error(f"metrics_{name}", [str(text) for text in texts])
        elif cleaned.get("metrics_path") and "metrics_port" in cleaned:
            self.add_error("metrics_port", gettext("Fill this in."))
        return cleaned

    def _called(self, name: str) -> str:
        return CALLED.get(name) or super()._called(name)

    def _metrics(self) -> dict[str, Any]:
        """Place of the metrics as in the API's body; empty for none."""
        port = self.cleaned_data.get("metrics_port")
        if port is None:
            return {}
        return {"port": port, "path": self.cleaned_data.get("metrics_path") or USUAL_PATH}

    def _distributed(self) -> Distributed | None:
        data = self.cleaned_data
        if not data.get("framework"):
            return None
        return Distributed(data.get("nodes") or 1, data.get("processes_per_node") or 1, data["framework"])

    def connected(self) -> dict[str, Any]:
        """Fields of a JobSpec that a valid form has."""
        data, metrics = self.cleaned_data, self._metrics()
        return {
            "distributed": self._distributed(),
            "checkpoints": data["checkpoints"],
            "after": [After(job, data["after_on"] or On.SUCCESS) for job in data["after"]],
            "writes": data["writes"],
            "exposition": Exposition(**metrics) if metrics else None,
        }

    def connected_body(self) -> dict[str, Any]:
        """Fields of the API's body, from what is filled in so far and valid."""
        data, distributed = self.cleaned_data, self._distributed()
        on = data.get("after_on") or On.SUCCESS.value
        volumes = {name: {"volume": str(data[name])} for name in ("checkpoints", "writes") if data.get(name)}
        return filled(
            distributed=asdict(distributed) if distributed else None,
            after=[{"job": str(job), "on": on} for job in data.get("after") or ()],
            metrics=self._metrics(),
            **volumes,
        )
