"""Form of a job: makes the same JobSpec as the API."""

from __future__ import annotations

import shlex
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs import programs, sweeps
from jobs.submit import MOST_RETRIES, PRIORITY, JobSpec
from jobs.sweeps import MOST_PARTS
from workloads.longest import LONGEST_MINUTES
from workloads.pages.bodies import body_of_form, filled
from workloads.pages.fields import plain_text
from workloads.pages.forms import WorkloadForm

from .forms_connected import CONNECTED, ConnectedForm

PROGRAMS = {"command": _("Command"), "script": _("Script"), "notebook": _("Notebook")}
MOST_CODES = 255


def text_area(rows: int, placeholder: str = "") -> forms.Textarea:
    attributes = {"rows": rows, "spellcheck": "false", "autocomplete": "off", "placeholder": placeholder}
    return forms.Textarea(attrs=attributes)


class CommandField(forms.CharField):
    """Program and arguments as a shell reads them; nothing in them is replaced."""

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        try:
            return shlex.split(str(value or ""))
        except ValueError:
            raise forms.ValidationError(gettext("A quotation mark is not closed.")) from None


class CodesField(forms.CharField):
    """Exit codes with commas between them."""

    def to_python(self, value: Any) -> list[int]:  # type: ignore[override]
        words = str(value or "").replace(",", " ").split()
        if not all(word.isascii() and word.isdigit() and 1 <= int(word[:4]) <= MOST_CODES for word in words):
            raise forms.ValidationError(gettext("Write numbers from 1 to 255, such as 2, 64."))
        return sorted({int(word) for word in words})


class SweepField(forms.CharField):
    """A grid or a list of points; None if it is empty."""

    def to_python(self, value: Any) -> Any:
        try:
            sweep = sweeps.parse(str(value or ""))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        if not sweep:
            return None
        if faults := sweeps.faults_of(sweep):
            raise forms.ValidationError(faults)
        return sweep


class JobForm(ConnectedForm):
    page = "job-new"
    api = "api-v1:jobs"
    in_links = (
        "tenant", "image", "image_reference", "flavor", "name", "program", "command", "notebook", "completions",
        "parallelism", "sweep", "retries", "final_exit_codes", "max_runtime_minutes", "ttl_hours", "repository",
        "volumes", *CONNECTED,
    )  # fmt: skip
    folded = (*WorkloadForm.folded, "final_exit_codes", "ttl_hours")
    without_end = _("No limit")
    priority = PRIORITY

    program = forms.ChoiceField(
        label=_("What runs"), choices=list(PROGRAMS.items()), widget=forms.RadioSelect, required=False
    )
    command = CommandField(
        label=_("Command"),
        required=False,
        max_length=programs.LONGEST_COMMAND_BYTES,
        help_text=_(
            "Starts in your home. $(BERTH_INDEX) and $(BERTH_PARAM_LR) are replaced by their values."
        ),
        widget=plain_text(placeholder="python train.py --epochs 10"),
    )
    script = forms.CharField(
        label=_("Script"),
        required=False,
        strip=False,
        max_length=programs.LONGEST_SCRIPT_BYTES,
        help_text=_("Runs with sh, or what its first line #! names. Stored encrypted."),
        widget=text_area(8, "#!/bin/bash\nset -e\npython train.py"),
    )
    notebook = forms.CharField(
        label=_("Notebook"),
        required=False,
        max_length=programs.LONGEST_PATH,
        help_text=_("Its path in your home or on a volume. The executed notebook is written beside it."),
        widget=plain_text(placeholder="work/train.ipynb"),
    )
    completions = forms.IntegerField(
        label=_("Parts"),
        required=False,
        min_value=1,
        max_value=MOST_PARTS,
        help_text=_("How often it runs, each with its own BERTH_INDEX. At most 1000."),
    )
    parallelism = forms.IntegerField(
        label=_("At once, at most"),
        required=False,
        min_value=1,
        max_value=MOST_PARTS,
        help_text=_("Parts that run side by side, each with the size above."),
    )
    sweep = SweepField(
        label=_("Sweep"),
        required=False,
        max_length=64 * 1024,
        help_text=_(
            "One part for each combination: a line such as lr = 0.1, 0.01 for each parameter. Or one for each point: a "
            "line of names, then a line of values for each. Programs get BERTH_PARAM_LR."
        ),
        widget=text_area(3, "lr = 0.1, 0.01\nseed = 1, 2, 3"),
    )
    retries = forms.IntegerField(
        label=_("Retries"),
        min_value=0,
        max_value=MOST_RETRIES,
        help_text=_("Failures of a part after which it starts again. A lost node does not count."),
    )
    final_exit_codes = CodesField(
        label=_("Final exit codes"),
        required=False,
        max_length=1024,
        help_text=_("After these a part is not tried again, such as 2, 64."),
        widget=plain_text(),
    )
    max_runtime_minutes = forms.TypedChoiceField(
        label=_("Longest runtime"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("A part that runs longer fails. A short one may start before others."),
    )
    ttl_hours = forms.IntegerField(
        label=_("Delete after"),
        required=False,
        min_value=1,
        max_value=LONGEST_MINUTES // 60,
        help_text=_("So long after its end. Empty: it stays."),
    )
    notify = forms.BooleanField(label=_("Notify me when it is over"), required=False)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["volumes"].help_text = _(
            "Your home is always mounted. A job that writes to a dataset has it alone; jobs that only read share it."
        )

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        few = {"program": "command", "completions": 1, "parallelism": 1, "retries": 3, "ttl_hours": 168}
        return super().defaults() | few

    @property
    def chosen_program(self) -> str:
        chosen = self["program"].value()
        return chosen if chosen in PROGRAMS else "command"

    def clean(self) -> dict[str, Any]:
        """Report all faults at once. Of the three programs the chosen one counts."""
        cleaned = super().clean()
        for name in PROGRAMS:
            if name != self.chosen_program:
                self.errors.pop(name, None)
        if self.chosen_program not in self.errors:
            if not self.asked().get(self.chosen_program):
                self.add_error(self.chosen_program, gettext("Fill this in."))
            else:
                for name, texts in programs.check(
                    **({"command": [], "script": "", "notebook": ""} | self.asked())
                ).items():
                    self.add_error(name, texts)
        if cleaned.get("sweep") and sweeps.number_of(cleaned["sweep"]) > MOST_PARTS:
            self.add_error("sweep", gettext("A job has at most %(most)d parts.") % {"most": MOST_PARTS})
        return cleaned

    def asked(self) -> dict[str, Any]:
        """Return the chosen program."""
        name = self.chosen_program
        value = self.cleaned_data.get(name)
        return {name: value.replace("\r\n", "\n") if name == "script" and value else value}

    def spec(self) -> JobSpec:
        """Return the job of a valid form."""
        data = self.cleaned_data
        return JobSpec(
            **self.common(),
            **self.asked(),
            **self.connected(),
            completions=1 if data["sweep"] else data["completions"] or 1,
            parallelism=data["parallelism"] or 1,
            retries=data["retries"],
            final_exit_codes=data["final_exit_codes"],
            sweep=data["sweep"],
            ttl_hours=data["ttl_hours"],
        )

    def body(self) -> dict[str, Any]:
        data = self.cleaned_data
        sweep, parallelism = data.get("sweep"), data.get("parallelism") or 1
        parts: dict[str, Any] = {"completions": data.get("completions") or 1, "parallelism": parallelism}
        if sweep:
            name = "parameters" if isinstance(sweep, dict) else "points"
            parts = {"sweep": {name: sweep, "parallelism": parallelism}}
        few = {"retries": data.get("retries", 3), "ttl_hours": data.get("ttl_hours")}
        codes = filled(final_exit_codes=data.get("final_exit_codes"))
        return body_of_form(self) | filled(**self.asked()) | parts | few | codes | self.connected_body()
