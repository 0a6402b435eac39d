"""Bodies of the workspace endpoints: requests, and for the documentation responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from quotas.models import MOST_MEMBERS
from quotas.scheduling.forecast import Confidence
from workloads.images import LONGEST_REFERENCE
from workloads.longest import LONGEST_MINUTES
from workloads.models import Image
from workloads.serializers import (
    LARGEST_MIB,
    Environment,
    ExpositionBody,
    ExpositionShape,
    MountBody,
    ReasonShape,
    RequestBody,
    SizeBody,
    exposition_of,
    size_asked,
    wishes_of,
)
from workloads.sizes.sizing import Size, SizeAsked
from workspaces.launch.launch import LaunchSpec
from workspaces.models import Desired, Event, Phase, ShareRole, Step, Workspace
from workspaces.runs.changes import Change, Lifetime, Metrics
from workspaces.runs.settings import NewSettings
from workspaces.state.declared import App
from workspaces.state.runs import next_size
from workspaces.state.settings import FIELDS

from .app_shapes import AppBody, AppShape


class SettingsBody(SizeBody):
    """Fields of both a launch and a change."""

    disk_mib = serializers.IntegerField(required=False, min_value=0, max_value=LARGEST_MIB)
    max_runtime_minutes = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LONGEST_MINUTES,
        help_text="It is stopped so long after it is ready; files stay. Null: it runs until it is stopped.",
    )
    idle_minutes = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LONGEST_MINUTES,
        help_text="It is stopped when nothing was done in it for so long; files stay. A policy of the "
        "tenant or pool may stop it sooner. Null: only a policy stops it.",
    )
    notify = serializers.BooleanField(
        required=False, help_text="Tell its person when it is ready, fails or stops. True unless said."
    )


class LaunchBody(SettingsBody, RequestBody):
    """Launch of a workspace. Give exactly one of flavor, pool or gpu to choose the place; other fields set amounts."""

    apps = AppBody(many=True, required=False, help_text="Programs with a web page in it, eight at most.")


class EstimateBody(LaunchBody):
    """Launch that is not made; or a job's, on several nodes."""

    nodes = serializers.IntegerField(
        required=False,
        default=1,
        min_value=1,
        max_value=MOST_MEMBERS,
        help_text="On so many nodes at once, each with this size.",
    )


class SecretChanges(Environment):
    """Names to new values, or to null."""

    child = serializers.CharField(allow_blank=True, allow_null=True, trim_whitespace=False)


class ChangeBody(SettingsBody):
    """Changes to an existing workspace; fields that are left out stay."""

    name = serializers.CharField(required=False, max_length=63)
    image = serializers.CharField(required=False, max_length=40, help_text="From the next start on.")
    image_reference = serializers.CharField(
        required=False,
        max_length=LONGEST_REFERENCE,
        help_text="Instead of `image`, from the next start on: a container image by its reference.",
    )
    env = Environment(required=False, help_text="All of it, from the next start on.")
    secret_env = SecretChanges(
        required=False,
        write_only=True,
        help_text="Sets those that it names, from the next start on; null removes one. Others stay.",
    )
    repository = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=1024,
        help_text="Cloned into the home at the next start, if it is not there. The address as it is shown keeps its "
        "credentials.",
    )
    volumes = MountBody(
        many=True,
        required=False,
        help_text="All that it mounts from the next start on, beside home and disk.",
    )
    metrics = ExpositionBody(required=False, allow_null=True, help_text="At once. Null: nowhere.")
    new_disk = serializers.BooleanField(
        required=False,
        help_text="True: an empty disk instead of its own, which ties it to a node and stays as a volume. It must be "
        "stopped, or wait.",
    )


class ExtendBody(StrictSerializer):
    minutes = serializers.IntegerField(
        required=False, min_value=1, max_value=LONGEST_MINUTES, help_text="Left out: its lifetime once more."
    )


class CloneBody(StrictSerializer):
    name = serializers.CharField(required=False, max_length=63, help_text="Left out: one that is free.")
    files = serializers.BooleanField(
        required=False,
        default=False,
        help_text="With a copy of its home and disk, and the volumes that it mounts.",
    )


def spec_of(body: Mapping[str, Any]) -> LaunchSpec:
    """Convert a valid LaunchBody to a LaunchSpec."""
    return LaunchSpec(
        tenant=body["tenant"],
        name=body["name"],
        image=body["image"],
        image_reference=body["image_reference"],
        size=size_asked(body),
        disk_mib=body.get("disk_mib", 0),
        env=body["env"],
        secret_env=body["secret_env"],
        repository=body["repository"],
        priority=body["priority"],
        max_runtime_minutes=body.get("max_runtime_minutes"),
        notify=body.get("notify", True),
        volumes=wishes_of(body["volumes"]),
        connections=body["connections"],
        exposition=exposition_of(body),
        idle_minutes=body.get("idle_minutes"),
        apps=[App(**app) for app in body.get("apps", ())],
    )


def change_of(body: Mapping[str, Any], workspace: Workspace) -> Change:
    """Convert a valid ChangeBody to a Change."""
    return Change(
        name=body.get("name"),
        size=new_size_asked(size_asked(body), next_size(workspace)),
        disk_mib=body.get("disk_mib"),
        lifetime=Lifetime(minutes=body["max_runtime_minutes"]) if "max_runtime_minutes" in body else None,
        idle=Lifetime(minutes=body["idle_minutes"]) if "idle_minutes" in body else None,
        notify=body.get("notify"),
        volumes=wishes_of(body["volumes"]) if "volumes" in body else None,
        metrics=Metrics(at=exposition_of(body)) if "metrics" in body else None,
        new_disk=body.get("new_disk", False),
        settings=NewSettings(**named)
        if (named := {name: body[name] for name in (*FIELDS, "image_reference") if name in body})
        else None,
    )


def new_size_asked(asked: SizeAsked, now: Size) -> SizeAsked | None:
    """Change the present size by amounts only; a place (flavor, pool, gpu) asks anew, as at launch. None: no change."""
    if asked == SizeAsked() or asked.flavor or asked.pool or asked.gpu:
        return None if asked == SizeAsked() else asked
    has = now.asked()
    if asked.gpus is not None or asked.gpu_memory_mib is not None:
        has = replace(has, flavor=None, pool=now.pool.slug, gpus=now.gpus_asked, gpu_memory_mib=None)
    return replace(has, **{name: value for name, value in asdict(asked).items() if value is not None})


# --- Responses, for OpenAPI alone: representation.py makes them


class WhenShape(serializers.Serializer[Any]):
    estimated_start = serializers.DateTimeField(allow_null=True, help_text="The middle of the range.")
    estimated_from = serializers.DateTimeField(
        allow_null=True, help_text="Eight of ten starts fall after this …"
    )
    estimated_to = serializers.DateTimeField(
        allow_null=True, help_text="… and before this. Null: nobody knows."
    )
    confidence = serializers.ChoiceField(choices=[one.value for one in Confidence])


class QueueShape(WhenShape):
    position = serializers.IntegerField()
    ahead = serializers.IntegerField()
    gpus_ahead = serializers.FloatField(help_text="What those ahead ask for together.")
    reason = ReasonShape()


class ProgressShape(serializers.Serializer[Any]):
    step = serializers.ChoiceField(choices=Step.choices)
    index = serializers.IntegerField(help_text="1 to 10.")
    total = serializers.IntegerField()
    since = serializers.DateTimeField()


class DirectSSHShape(serializers.Serializer[Any]):
    host = serializers.CharField()
    port = serializers.IntegerField()
    user = serializers.CharField()
    command = serializers.CharField()
    config = serializers.CharField(help_text="For ~/.ssh/config.")
    nickname = serializers.CharField(help_text="The host of these lines: `ssh <nickname>`.")
    host_key_fingerprint = serializers.CharField()
    known_hosts = serializers.CharField(
        help_text="Lines for a known_hosts file: ssh then asks about no host key."
    )
    vscode = serializers.CharField(help_text="Opens it in VS Code.")


class JumpSSHShape(DirectSSHShape):
    jump_host_key_fingerprint = serializers.CharField(help_text="Of Berth's own SSH address.")


class SSHShape(DirectSSHShape):
    jump_host_key_fingerprint = serializers.CharField(required=False)
    jump = JumpSSHShape(allow_null=True, help_text="The way through Berth, where that is set up.")
    by_name = JumpSSHShape(
        allow_null=True,
        help_text="The same by a host name that stays, with one config for all workspaces of the person.",
    )


class JupyterShape(serializers.Serializer[Any]):
    url = serializers.CharField()
    token = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True)


class EndpointsShape(serializers.Serializer[Any]):
    jupyter = serializers.CharField(
        allow_null=True, help_text="Link for a browser that is signed in to Berth."
    )
    ssh = SSHShape(allow_null=True)
    code_server = serializers.CharField(
        allow_null=True, help_text="Link to VS Code, if the image has code-server; as that to Jupyter."
    )
    apps = AppShape(many=True, help_text="For others: those that are shared with the tenant.")


class FailureShape(ReasonShape):
    at = serializers.DateTimeField()
    post_mortem = serializers.UUIDField(
        allow_null=True, help_text="Its record, under post-mortems/; null: none."
    )


class StartProblemShape(ReasonShape):
    since = serializers.DateTimeField(allow_null=True)
    gives_up_at = serializers.DateTimeField(
        allow_null=True, help_text="When it ends the start, if it lasts. Null: it does not."
    )


class ReclaimShape(ReasonShape):
    at = serializers.DateTimeField()


class IdleShape(serializers.Serializer[Any]):
    since = serializers.DateTimeField(allow_null=True, help_text="Nothing was done in it since then.")
    stops_at = serializers.DateTimeField(allow_null=True, help_text="When it is stopped, if that goes on.")
    busy_by = serializers.ListField(
        child=serializers.CharField(),
        help_text="What keeps it busy: gpu, cpu, kernel, terminal, ssh, keep_alive; or what is not known, so that "
        "nothing stops it: gpu_unknown, cpu_unknown, inside_unknown.",
    )


class NextSizeShape(serializers.Serializer[Any]):
    pool = serializers.CharField()
    flavor = serializers.CharField(allow_null=True)
    gpus = serializers.FloatField()
    cpu = serializers.FloatField()
    memory_mib = serializers.IntegerField()
    message = serializers.CharField()


class WorkspaceShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField()
    owner = serializers.CharField()
    name = serializers.CharField()
    shared_with_me = serializers.ChoiceField(
        choices=ShareRole.choices, allow_null=True, help_text="How its owner shared it with you; null: not."
    )
    image = serializers.CharField()
    pool = serializers.CharField()
    flavor = serializers.CharField(allow_null=True)
    gpus = serializers.FloatField()
    gpu_memory_mib = serializers.IntegerField(allow_null=True)
    cpu = serializers.FloatField()
    memory_mib = serializers.IntegerField()
    disk_mib = serializers.IntegerField()
    env = serializers.DictField(child=serializers.CharField(), allow_null=True, help_text="Null for others.")
    repository = serializers.CharField(allow_null=True, allow_blank=True, help_text="Null for others.")
    priority = serializers.IntegerField()
    desired = serializers.ChoiceField(choices=Desired.choices)
    phase = serializers.ChoiceField(choices=Phase.choices)
    message = serializers.CharField(allow_blank=True)
    queue = QueueShape(allow_null=True)
    progress = ProgressShape()
    endpoints = EndpointsShape(
        help_text="Null for everybody but its own person and colleagues of a share, except shared apps."
    )
    failure = FailureShape(allow_null=True)
    problem = StartProblemShape(
        allow_null=True, help_text="What is in the way of its start, or wrong with what runs."
    )
    volumes = serializers.ListField(child=serializers.DictField())
    node = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ready_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)
    stops_at = serializers.DateTimeField(
        allow_null=True, help_text="When its lifetime ends; null: no end is set."
    )
    reclaim = ReclaimShape(
        allow_null=True, help_text="Its GPUs are asked back, or its budget is spent: when it stops, and why."
    )
    max_runtime_minutes = serializers.IntegerField(allow_null=True)
    idle_minutes = serializers.IntegerField(allow_null=True)
    notify = serializers.BooleanField()
    metrics = ExpositionShape(allow_null=True, help_text="Where its program serves figures.")
    restart_needed = serializers.BooleanField(help_text="A change waits for the next start.")
    pending_restart = serializers.ListField(
        child=serializers.ChoiceField(choices=["size", "volumes", *FIELDS]),
        help_text="What the next start changes.",
    )
    image_reference = serializers.CharField(allow_null=True, help_text="Of an image by reference; else null.")
    next_image = serializers.CharField(allow_null=True, help_text="The image from then on; null: the same.")
    next_env = serializers.DictField(
        child=serializers.CharField(), allow_null=True, help_text="Likewise; null for others, too."
    )
    next_repository = serializers.CharField(allow_null=True, allow_blank=True, help_text="Likewise.")
    next_image_reference = serializers.CharField(allow_null=True)
    previous_image = serializers.CharField(
        allow_null=True, help_text="The image before the last change, until it was ready with the new one."
    )
    next_size = NextSizeShape(allow_null=True, help_text="The size that it has from then on.")
    next_volumes = serializers.ListField(
        child=serializers.DictField(),
        allow_null=True,
        help_text="The volumes that it mounts from then on; null: the same.",
    )
    idle = IdleShape()
    last_event = serializers.IntegerField()


class EventShape(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="1, 2, 3 … within the workspace.")
    run = serializers.UUIDField(allow_null=True)
    at = serializers.DateTimeField()
    step = serializers.ChoiceField(choices=Step.choices, allow_null=True)
    level = serializers.ChoiceField(choices=Event.Level.choices)
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)
    data = serializers.DictField()  # type: ignore[assignment]
    post_mortem = serializers.UUIDField(
        allow_null=True, help_text="Record of the run that this event ended or interrupted."
    )


class ImageShape(serializers.ModelSerializer[Image]):
    offers = serializers.SerializerMethodField()

    class Meta:
        model = Image
        fields = (
            "slug",
            "name",
            "description",
            "reference",
            "version",
            "cuda_version",
            "frameworks",
            "least_driver",
            "offers",
            "uid",
            "gid",
            "username",
            "home",
            "shell",
        )

    def get_offers(self, image: Image) -> list[str]:
        offered = {
            "jupyter": image.offers_jupyter,
            "ssh": image.offers_ssh,
            "code_server": image.has_code_server,
        }
        return [name for name, is_offered in offered.items() if is_offered]


class EstimateShape(WhenShape):
    admissible = serializers.BooleanField()
    starts_now = serializers.BooleanField()
    position = serializers.IntegerField(allow_null=True)
    gpus_ahead = serializers.FloatField(allow_null=True)
    borrows = serializers.BooleanField(help_text="On GPUs beyond the tenant's own, which may be asked back.")
    reasons = ReasonShape(many=True)
    alternatives = serializers.ListField(
        child=serializers.DictField(), help_text="Launch bodies that would start now; add your secret_env."
    )
