"""Bodies of the job endpoints: requests, and for the documentation responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from jobs.models import Event, Framework, Phase
from jobs.submit import MOST_PARTS, PRIORITY, Distributed, JobSpec
from workloads.asking import ENV_NAME
from workloads.serializers import ReasonShape, RequestBody, SizeBody, size_asked, wishes_of

LONGEST_MINUTES = 365 * 24 * 60
MOST_VALUES = 1000
MOST_NODES = 64
MOST_PROCESSES = 128
# Fields of the contract that are not built yet: accepted if empty, else answered 501.
LATER = ("after", "writes")


class Sweep(StrictSerializer):
    """Values by name: each combination of them is a part."""

    parameters = serializers.DictField(
        child=serializers.ListField(
            child=serializers.JSONField(), allow_empty=False, min_length=1, max_length=MOST_VALUES
        ),
        allow_empty=False,
    )
    parallelism = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MOST_PARTS)

    def validate_parameters(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not all(ENV_NAME.fullmatch(name) and len(name) <= 63 for name in values):
            raise serializers.ValidationError(_("Names have letters, digits and _, at most 63."))
        if len({name.upper() for name in values}) < len(values):
            raise serializers.ValidationError(_("Two names differ only in capitals."))
        if not all(isinstance(value, str | int | float) for each in values.values() for value in each):
            raise serializers.ValidationError(_("Values are texts, numbers, true or false."))
        return values


class DistributedBody(StrictSerializer):
    """Processes that work on a part together, on one or several nodes."""

    nodes = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MOST_NODES)
    processes_per_node = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MOST_PROCESSES
    )
    framework = serializers.ChoiceField(choices=Framework.choices)


class CheckpointsBody(StrictSerializer):
    volume = serializers.UUIDField(help_text="One of `volumes`, which the job may write to.")


class JobBody(SizeBody, RequestBody):
    """A job. Give exactly one of flavor, pool or gpu, and either a command or a script."""

    command = serializers.ListField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        default=list,
        max_length=1000,
        help_text="Program and arguments. $(BERTH_INDEX) and $(BERTH_PARAM_NAME) are replaced by their values.",
    )
    script = serializers.CharField(required=False, default="", allow_blank=True, trim_whitespace=False)
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
        max_value=100,
        help_text="Failures of a part after which it is tried again. A lost node is not counted.",
    )
    final_exit_codes = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=255),
        required=False,
        default=list,
        max_length=255,
    )
    sweep = Sweep(required=False, allow_null=True, default=None)
    priority = serializers.IntegerField(required=False, default=PRIORITY, min_value=-100, max_value=100)
    max_runtime_minutes = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=LONGEST_MINUTES,
        help_text="A part fails that runs longer. Null: as long as it takes.",
    )
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
    after = serializers.ListField(required=False, child=serializers.JSONField(), help_text="Not built yet.")
    writes = serializers.JSONField(required=False, allow_null=True, help_text="Not built yet.")


class DuplicateBody(StrictSerializer):
    name = serializers.CharField(required=False, max_length=63, help_text="Left out: the same.")


def spec_of(body: Mapping[str, Any]) -> JobSpec:
    """Convert a valid JobBody to a JobSpec."""
    same = (
        "tenant", "name", "image", "command", "script", "completions", "parallelism", "retries",
        "final_exit_codes", "ttl_hours", "env", "secret_env", "repository", "priority", "max_runtime_minutes",
        "notify", "connections",
    )  # fmt: skip
    values = {name: body[name] for name in same}
    if body["sweep"]:
        values |= {"sweep": body["sweep"]["parameters"], "parallelism": body["sweep"]["parallelism"]}
    distributed = Distributed(**body["distributed"]) if body["distributed"] else None
    not_built = [name for name in LATER if body.get(name)]
    if distributed and distributed.nodes > 1:
        not_built.append("distributed")
    return JobSpec(
        **values,
        size=size_asked(body),
        distributed=distributed,
        checkpoints=body["checkpoints"] and body["checkpoints"]["volume"],
        volumes=wishes_of(body["volumes"]),
        not_built=not_built,
    )


# --- Responses, for OpenAPI alone: representation.py makes them


class JobFailureShape(ReasonShape):
    at = serializers.DateTimeField()
    post_mortem = serializers.JSONField(allow_null=True)


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
    counted = serializers.BooleanField(help_text="It counts against the retries.")
    ranks = RankShape(many=True, help_text="Its pods, one for each node.")


class JobProgressShape(serializers.Serializer[Any]):
    fraction = serializers.FloatField()
    eta = serializers.DateTimeField(allow_null=True)
    metrics = serializers.DictField(child=serializers.FloatField())


class JobShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField()
    owner = serializers.CharField()
    name = serializers.CharField()
    image = serializers.CharField()
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
    attempts = AttemptShape(many=True, help_text="The newest 100.")
    failure = JobFailureShape(allow_null=True)
    command = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="Null for others."
    )
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
    priority = serializers.IntegerField()
    max_runtime_minutes = serializers.IntegerField(allow_null=True)
    notify = serializers.BooleanField()
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
