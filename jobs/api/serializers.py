"""Bodies of the job endpoints: requests, and for the documentation responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from jobs import programs, sweeps
from jobs.models import Event, Framework, On, PartPhase, Phase
from jobs.progress.lines import LARGEST_STEP
from jobs.runs.following import After, Standing
from jobs.submit import MOST_RETRIES, PRIORITY, Distributed, JobSpec
from jobs.sweeps import MOST_PARTS
from workloads.copies import Source
from workloads.longest import LONGEST_MINUTES
from workloads.serializers import (
    EnvironmentBody,
    ExpositionShape,
    ReasonShape,
    RequestBody,
    SizeBody,
    exposition_of,
    size_asked,
    wishes_of,
)
from workloads.sizes.sizing import Size

MOST_NODES = 64
MOST_PROCESSES = 128


class Sweep(StrictSerializer):
    """A part for each combination of `parameters`, or for each of `points`."""

    parameters = serializers.DictField(
        child=serializers.ListField(
            child=serializers.JSONField(), allow_empty=False, min_length=1, max_length=MOST_PARTS
        ),
        required=False,
        allow_empty=False,
        help_text="Values by name.",
    )
    points = serializers.ListField(
        child=serializers.DictField(child=serializers.JSONField(), allow_empty=False),
        required=False,
        min_length=1,
        max_length=MOST_PARTS,
        help_text="Each with a value for every name.",
    )
    parallelism = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MOST_PARTS)

    def validate_parameters(self, sweep: sweeps.Grid | sweeps.Points) -> sweeps.Grid | sweeps.Points:
        if faults := sweeps.faults_of(sweep):
            raise serializers.ValidationError(faults)
        return sweep

    validate_points = validate_parameters

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("parameters" in attrs) == ("points" in attrs):
            raise serializers.ValidationError({"parameters": [_("Give either parameters or points.")]})
        return attrs


class AfterBody(StrictSerializer):
    """Job that has to be over first: with success, or in any way."""

    job = serializers.UUIDField()
    on = serializers.ChoiceField(choices=On.choices, required=False, default=On.SUCCESS)


class WritesBody(StrictSerializer):
    """Dataset that it writes: its success publishes a version. Mounted at `/volumes/NAME` if `volumes` has no path."""

    volume = serializers.UUIDField()


class DistributedBody(StrictSerializer):
    """Processes that work on a part together, on one or several nodes."""

    nodes = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MOST_NODES)
    processes_per_node = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MOST_PROCESSES
    )
    framework = serializers.ChoiceField(choices=Framework.choices)


class CheckpointsBody(StrictSerializer):
    volume = serializers.UUIDField(help_text="One of `volumes`, which the job may write to.")


class ProgramBody(StrictSerializer):
    """Program of a job, how often it runs, and what follows. Give one of command, script or notebook."""

    command = serializers.ListField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        default=list,
        max_length=1000,
        help_text="Program and arguments. $(BERTH_INDEX) and $(BERTH_PARAM_NAME) are replaced by their values.",
    )
    script = serializers.CharField(required=False, default="", allow_blank=True, trim_whitespace=False)
    notebook = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=programs.LONGEST_PATH,
        help_text="Path of a notebook to execute; the result is written beside it.",
    )
    completions = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MOST_PARTS, help_text="Parts that have to succeed."
    )
    parallelism = serializers.IntegerField(
        required=False,
        default=1,
        min_value=1,
        max_value=MOST_PARTS,
        help_text="Parts that run at once, at most.",
    )
    retries = serializers.IntegerField(
        required=False,
        default=3,
        min_value=0,
        max_value=MOST_RETRIES,
        help_text="Failures of a part after which it is tried again. A lost node is not counted.",
    )
    final_exit_codes = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=255),
        required=False,
        default=list,
        max_length=255,
    )
    sweep = Sweep(required=False, allow_null=True, default=None)
    max_runtime_minutes = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=LONGEST_MINUTES,
        help_text="A part fails that runs longer. Null: as long as it takes.",
    )
    priority = serializers.IntegerField(required=False, default=PRIORITY, min_value=-100, max_value=100)
    notify = serializers.BooleanField(required=False, default=True)
    ttl_hours = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=168,
        min_value=1,
        max_value=LONGEST_MINUTES // 60,
        help_text="It is deleted so long after its end. Null: it stays.",
    )
    distributed = DistributedBody(
        required=False, allow_null=True, default=None, help_text="The size is that of one node."
    )
    checkpoints = CheckpointsBody(
        required=False, allow_null=True, default=None, help_text="Null: checkpoints are in the home."
    )
    after = AfterBody(
        many=True, required=False, default=list, help_text="It begins once these jobs are over, at most 20."
    )
    writes = WritesBody(required=False, allow_null=True, default=None)


class JobBody(ProgramBody, SizeBody, RequestBody):
    """A job. Give exactly one of flavor, pool or gpu, and one of command, script or notebook."""


class WorkspaceJobBody(ProgramBody, EnvironmentBody):
    """A job with a workspace's image, size, volumes and environment. `env` and `secret_env` are added to its own."""

    name = serializers.CharField(required=False, max_length=63, help_text="Left out: the workspace's.")


class KeepBody(StrictSerializer):
    keep = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=MOST_PARTS - 1),
        required=False,
        default=list,
        max_length=MOST_PARTS,
        help_text="Indices of parts that go on, if they are not over.",
    )


class MetricsBody(StrictSerializer):
    """Values of a moment. `progress` is the part of the work that is done, from 0 to 1."""

    step = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=LARGEST_STEP
    )
    values = serializers.DictField(child=serializers.FloatField(), allow_empty=False)
    index = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**31 - 1)


class DuplicateBody(StrictSerializer):
    name = serializers.CharField(required=False, max_length=63, help_text="Left out: the same.")


def spec_of(body: Mapping[str, Any]) -> JobSpec:
    """Convert a valid JobBody to a JobSpec."""
    same = ("tenant", "name", "image", "image_reference", "env", "secret_env", "repository", "connections")
    return JobSpec(
        **{name: body[name] for name in same},
        **program_of(body),
        size=size_asked(body),
        volumes=wishes_of(body["volumes"]),
        exposition=exposition_of(body),
    )


def spec_from(source: Source, body: Mapping[str, Any]) -> JobSpec:
    """Convert a valid WorkspaceJobBody to a JobSpec with the settings of a workspace."""
    row = source.row
    secrets = {name: value for name, value in source.secret_env.items() if name not in body["env"]}
    return JobSpec(
        **program_of(body),
        tenant=row.tenant.slug,
        name=body.get("name") or row.name,
        image=row.image.slug,
        size=Size.of(row).asked(),
        env={name: value for name, value in source.env.items() if name not in body["secret_env"]}
        | body["env"],
        secret_env=secrets | body["secret_env"],
        repository=source.repository,
        volumes=source.wishes,
        connections=source.connections,
    )


def program_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the fields of a valid ProgramBody to those of a JobSpec."""
    same = (
        "command", "script", "notebook", "completions", "parallelism", "retries", "final_exit_codes", "ttl_hours",
        "priority", "max_runtime_minutes", "notify",
    )  # fmt: skip
    values: dict[str, Any] = {name: body[name] for name in same}
    if sweep := body["sweep"]:
        points = sweep.get("parameters", sweep.get("points"))
        values |= {"sweep": points, "parallelism": sweep["parallelism"]}
    return values | {
        "after": [After(one["job"], one["on"]) for one in body["after"]],
        "writes": body["writes"]["volume"] if body["writes"] else None,
        "distributed": Distributed(**body["distributed"]) if body["distributed"] else None,
        "checkpoints": body["checkpoints"] and body["checkpoints"]["volume"],
    }


# --- Responses, for OpenAPI alone: representation.py makes them


class JobFailureShape(ReasonShape):
    at = serializers.DateTimeField()
    post_mortem = serializers.UUIDField(
        allow_null=True, help_text="Its record, under post-mortems/; null: none."
    )


class IndicesShape(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    active = serializers.IntegerField()


class RankShape(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="Rank of its node.")
    node = serializers.CharField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="Null: it has not ended.")


class AttemptShape(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    index = serializers.IntegerField()
    node = serializers.CharField(allow_null=True)
    gpus = serializers.ListField(child=serializers.CharField())
    exit_code = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    message = serializers.CharField(allow_blank=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    gpu_use_percent = serializers.FloatField(allow_null=True, help_text="Mean over its time.")
    tail = serializers.CharField(
        allow_null=True,
        allow_blank=True,
        help_text="Last lines of one that failed. Null in lists and for others.",
    )
    counted = serializers.BooleanField(help_text="It counts against the retries.")
    post_mortem = serializers.UUIDField(
        allow_null=True, help_text="Its record, if it failed or was interrupted."
    )
    ranks = RankShape(many=True, help_text="Its pods, one for each node.")


class JobProgressShape(serializers.Serializer[Any]):
    fraction = serializers.FloatField()
    eta = serializers.DateTimeField(allow_null=True)
    metrics = serializers.DictField(child=serializers.FloatField())


class AfterShape(serializers.Serializer[Any]):
    job = serializers.UUIDField()
    name = serializers.CharField()
    on = serializers.ChoiceField(choices=On.choices)
    phase = serializers.ChoiceField(choices=Phase.choices)
    standing = serializers.ChoiceField(choices=[one.value for one in Standing])


class PublishedShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.IntegerField()
    phase = serializers.CharField(help_text="pending, ready, failed, deleting or deleted.")


class WritesShape(serializers.Serializer[Any]):
    volume = serializers.UUIDField()
    name = serializers.CharField()
    version = PublishedShape(allow_null=True, help_text="What its success published.")


class JobShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField()
    owner = serializers.CharField()
    name = serializers.CharField()
    image = serializers.CharField()
    image_reference = serializers.CharField(allow_null=True, help_text="Of an image by reference; else null.")
    pool = serializers.CharField()
    flavor = serializers.CharField(allow_null=True)
    gpus = serializers.FloatField()
    cpu = serializers.FloatField()
    memory_mib = serializers.IntegerField()
    phase = serializers.ChoiceField(choices=Phase.choices)
    message = serializers.CharField(allow_blank=True)
    problem = ReasonShape(allow_null=True)
    queue = serializers.JSONField(allow_null=True, help_text="As of a workspace, for the part that is first.")
    progress = JobProgressShape(allow_null=True)
    indices = IndicesShape()
    attempts = AttemptShape(
        many=True, help_text="The newest 100; in a list, 1000 at most of all jobs together."
    )
    failure = JobFailureShape(allow_null=True)
    command = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="Null for others."
    )
    notebook = serializers.CharField(allow_null=True, help_text="That its command executes. Null for others.")
    env = serializers.DictField(child=serializers.CharField(), allow_null=True, help_text="Null for others.")
    repository = serializers.CharField(allow_null=True, allow_blank=True, help_text="Null for others.")
    volumes = serializers.ListField(child=serializers.DictField())
    completions = serializers.IntegerField()
    parallelism = serializers.IntegerField()
    retries = serializers.IntegerField()
    final_exit_codes = serializers.ListField(child=serializers.IntegerField())
    sweep = serializers.JSONField(allow_null=True)
    distributed = DistributedBody(allow_null=True)
    checkpoints = CheckpointsBody(allow_null=True)
    after = AfterShape(many=True)
    writes = WritesShape(allow_null=True)
    priority = serializers.IntegerField()
    max_runtime_minutes = serializers.IntegerField(allow_null=True)
    notify = serializers.BooleanField()
    metrics = ExpositionShape(allow_null=True, help_text="Where its program serves figures.")
    ttl_hours = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)
    last_event = serializers.IntegerField()


class JobEventShape(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="1, 2, 3 … within the job.")
    run = serializers.UUIDField(allow_null=True)
    at = serializers.DateTimeField()
    step = serializers.CharField(allow_null=True)
    level = serializers.ChoiceField(choices=Event.Level.choices)
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)
    data = serializers.DictField()  # type: ignore[assignment]


class PartShape(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    parameters = serializers.DictField()
    phase = serializers.ChoiceField(choices=PartPhase.choices)
    attempts = serializers.IntegerField()
    failures = serializers.IntegerField(help_text="Attempts that count against the retries.")
    metrics = serializers.DictField(child=serializers.FloatField(), help_text="Newest values, by name.")
    progress = serializers.FloatField(allow_null=True)


class PartsShape(serializers.Serializer[Any]):
    results = PartShape(many=True)
    next = serializers.CharField(allow_null=True, help_text="Null: all parts are here.")


class PipelineNodeShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=["job", "version"])
    name = serializers.CharField()
    phase = serializers.CharField(allow_null=True, help_text="Null: a version that is not published yet.")
    owner = serializers.CharField(allow_null=True)
    number = serializers.IntegerField(allow_null=True, help_text="Of a version.")
    volume = serializers.UUIDField(allow_null=True, help_text="Dataset of a version.")


class PipelineEdgeShape(serializers.Serializer[Any]):
    to = serializers.CharField()
    kind = serializers.ChoiceField(choices=["after", "writes", "reads"])
    on = serializers.ChoiceField(choices=On.choices, allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is a word of Python."""
        return {"from": serializers.CharField(), **super().get_fields()}


class PipelineShape(serializers.Serializer[Any]):
    nodes = PipelineNodeShape(many=True)
    edges = PipelineEdgeShape(many=True)
    is_whole = serializers.BooleanField(help_text="False: there are more than 60 jobs.")


class PointShape(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    value = serializers.FloatField()
    at = serializers.DateTimeField()


class ReportedSeriesShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    points = PointShape(many=True, help_text="Thinned: 256 at most, and the newest.")


class ReportedShape(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    progress = serializers.FloatField(allow_null=True)
    metrics = serializers.DictField(child=serializers.FloatField())
    series = ReportedSeriesShape(many=True)
