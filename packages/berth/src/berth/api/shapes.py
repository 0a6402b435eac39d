"""Shapes of what the API takes and answers.

Written by `make client` from the API's schema: change that, not this file.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class ActionBody(TypedDict):
    ids: list[str]
    confirm: NotRequired[bool]


class ActionShape(TypedDict):
    of: str
    action: str
    title: str
    notes: list[str]


class ActionsShape(TypedDict):
    results: list[ActionShape]


class AddedHours(TypedDict):
    tenant: str
    user: NotRequired[str | None]
    add_gpu_hours: float


class AdoptBody(TypedDict):
    tenant: str
    cluster: NotRequired[str]
    owner: str
    name: str
    kind: Literal["dataset", "home", "disk"]
    persistent_volume: NotRequired[str]
    claim: NotRequired[str]


class AdoptionShape(TypedDict):
    state: Literal["asked", "read_only", "confirmed"]
    inspection: InspectionShape | None
    problem: ProblemShape | None


class AfterBody(TypedDict):
    job: str
    on: NotRequired[Literal["success", "end"]]


class AfterShape(TypedDict):
    job: str
    name: str
    on: Literal["success", "end"]
    phase: Literal["waiting", "starting", "running", "succeeded", "failed", "cancelling", "cancelled"]
    standing: Literal["waits", "met", "never"]


class AgentTokenShape(TypedDict):
    id: str
    cluster: str
    name: str
    prefix: str
    created_at: str
    last_used_at: str | None
    revoked_at: str | None


class AgentTokenWithSecretShape(TypedDict):
    id: str
    cluster: str
    name: str
    prefix: str
    created_at: str
    last_used_at: str | None
    revoked_at: str | None
    secret: str


class AlertMemberShape(TypedDict):
    code: str
    message: str
    severity: Literal["info", "warning", "critical"]
    node: str | None
    name: str | None
    since: str
    ended_at: str | None


class AlertShape(TypedDict):
    id: str
    code: str
    message: str
    hint: str
    severity: Literal["info", "warning", "critical"]
    state: Literal["firing", "acknowledged", "silenced", "resolved"]
    cluster: str | None
    pools: list[str]
    tenant: str | None
    count: int
    still_firing: int
    names: list[str]
    since: str
    last_at: str
    acknowledged_by: str | None
    acknowledged_at: str | None
    silenced_until: str | None
    escalated_at: str | None
    resolved_by: str | None
    resolved_at: str | None


class AlikeShape(TypedDict):
    id: str
    tenant: str
    owner: str
    workspace: str | None
    job: str | None
    name: str
    index: int | None
    attempt: int | None
    cluster: str | None
    node: str | None
    pool: str | None
    image: str | None
    gpus: list[str]
    happened: Literal["failed", "evicted", "interrupted", "restarted", "rejected", "lost"]
    verdict: VerdictShape
    exit_code: int | None
    started_at: str | None
    ended_at: str
    is_complete: bool
    shares: list[Literal["holder", "gpu", "node", "verdict"]]


class AnnouncementShape(TypedDict):
    id: str
    text: str
    level: NotRequired[Literal["info", "warn", "bad"]]
    shown_from: NotRequired[str]
    shown_until: NotRequired[str | None]
    no_launches_from: NotRequired[str | None]


class AppBody(TypedDict):
    name: str
    port: int
    shared_with: NotRequired[Literal["me", "tenant"]]


class AppShape(TypedDict):
    name: str
    port: int
    url: str | None
    shared_with: Literal["me", "tenant"]


class AttemptShape(TypedDict):
    number: int
    index: int
    node: str | None
    gpus: list[str]
    exit_code: int | None
    reason: str | None
    message: str
    started_at: str | None
    ended_at: str | None
    gpu_use_percent: float | None
    tail: str | None
    counted: bool
    post_mortem: str | None
    ranks: list[RankShape]


class AuditShape(TypedDict):
    id: int
    at: str
    actor: str
    action: str
    outcome: NotRequired[Literal["done", "refused"]]
    tenant: str | None
    target_kind: NotRequired[str]
    target_id: NotRequired[str]
    address: NotRequired[str | None]
    data: dict[str, Any]


BookingBody = TypedDict(
    "BookingBody",
    {
        "title": str,
        "places": NotRequired[int],
        "tenant": str,
        "pool": str,
        "gpus_each": NotRequired[float],
        "from": str,
        "to": str,
    },
)


BookingShape = TypedDict(
    "BookingShape",
    {
        "id": str | None,
        "pool": str,
        "tenant": str | None,
        "title": str | None,
        "places": int,
        "gpus_each": float,
        "created_by": str | None,
        "state": "Literal['upcoming', 'running', 'over', 'cancelled']",
        "images_warm": "list[WarmImageShape] | None",
        "from": str,
        "to": str,
    },
)


class BudgetSettings(TypedDict):
    tenant: str
    user: NotRequired[str | None]
    gpu_hours: float
    grace_minutes: NotRequired[int]


class BudgetShape(TypedDict):
    tenant: str
    user: str | None
    month: str
    gpu_hours: float
    added_gpu_hours: float
    limit_gpu_hours: float
    spent_gpu_hours: float
    is_spent: bool
    stops_at: str | None


class ChangedShape(TypedDict):
    kind: str
    key: str
    fields: dict[str, dict[str, Any]]


class CheckpointsBody(TypedDict):
    volume: str


class ClassBody(TypedDict):
    tenant: str
    name: NotRequired[str]
    template: NotRequired[str]
    launch: NotRequired[TemplateLaunch]
    volumes: NotRequired[list[MountBody]]
    people: list[str]
    booking: NotRequired[str | None]
    when: NotRequired[Literal["now", "sign_in"]]


class ClassLineShape(TypedDict):
    person: str
    workspace: str | None
    phase: Literal[
        "refused",
        "pending",
        "at_sign_in",
        "waiting",
        "starting",
        "ready",
        "stopping",
        "stopped",
        "failed",
        "deleting",
        "deleted",
    ]
    message: str
    problem: ReasonShape | None
    ready_at: str | None
    stops_at: str | None


class ClassShape(TypedDict):
    id: str
    tenant: str
    name: str
    when: Literal["now", "sign_in"]
    template: str | None
    booking: str | None
    launch: Any
    by: str | None
    created_at: str
    stopped_at: str | None
    counts: CountsShape


class ClassWithPeopleShape(TypedDict):
    id: str
    tenant: str
    name: str
    when: Literal["now", "sign_in"]
    template: str | None
    booking: str | None
    launch: Any
    by: str | None
    created_at: str
    stopped_at: str | None
    counts: CountsShape
    people: list[ClassLineShape]


class CloneBody(TypedDict):
    name: NotRequired[str]
    files: NotRequired[bool]


class CloseBody(TypedDict):
    why: NotRequired[str]


class ClusterSettings(TypedDict):
    kubeconfig: NotRequired[str | None]
    registries: NotRequired[list[Registry]]
    without_isolation: NotRequired[bool]
    slug: str
    name: str
    connection: NotRequired[Literal["in-cluster", "kubeconfig", "pasted"]]
    kubeconfig_path: NotRequired[str]
    context: NotRequired[str]
    exposure: NotRequired[Literal["load-balancer", "node-port", "portal"]]
    node_address: NotRequired[str]
    ssh_service_port: NotRequired[int]
    keeps_addresses: NotRequired[bool]
    prometheus_url: NotRequired[str]
    prometheus_token_path: NotRequired[str]
    home_class: NotRequired[str]
    home_mib: NotRequired[int]
    disk_class: NotRequired[str]
    dataset_class: NotRequired[str]
    shared_classes: NotRequired[list[str]]
    image_pull_secrets: NotRequired[list[str]]
    validation_image: NotRequired[str]
    files_image: NotRequired[str]
    files_uid: NotRequired[int]
    http_proxy: NotRequired[str]
    https_proxy: NotRequired[str]
    no_proxy: NotRequired[str]
    pod_environment: NotRequired[str]
    trusted_certificates: NotRequired[str]
    pod_cidrs: NotRequired[list[str]]
    service_cidrs: NotRequired[list[str]]
    api_cidrs: NotRequired[list[str]]
    denied_cidrs: NotRequired[list[str]]
    allowed_cidrs: NotRequired[list[str]]
    metrics_namespace: NotRequired[str]


class ClusterShape(TypedDict):
    id: str
    slug: str
    name: str
    exposure: NotRequired[Literal["load-balancer", "node-port", "portal"]]
    version: str
    unreachable_since: str | None
    unreachable_reason: str
    without_isolation: bool
    missing_networks: list[str]


class CollectBody(TypedDict):
    folder: str


class ConnectionBody(TypedDict):
    tenant: str
    name: str
    endpoint: str
    bucket: str
    access_key: str
    secret_key: str


class ConnectionShape(TypedDict):
    id: str
    tenant: str
    name: str
    endpoint: str
    bucket: str
    created_at: NotRequired[str]


class CountsShape(TypedDict):
    people: int
    ready: int
    on_the_way: int
    waiting: int
    to_come: int
    problems: int
    last_ready_at: str | None


class CreatedShape(TypedDict):
    kind: str
    key: str
    fields: dict[str, Any]


class DeleteBody(TypedDict):
    with_data: NotRequired[bool]


class DeliveryShape(TypedDict):
    id: str
    alert: str | None
    route: str
    occasion: Literal["firing", "escalated", "resolved", "test"]
    to: str
    message_id: str | None
    state: Literal["waiting", "sent", "given_up"]
    attempts: int
    status_code: int | None
    error: str
    created_at: str
    due_at: str | None
    sent_at: str | None


class DeviceCodeShape(TypedDict):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class DeviceTokenBody(TypedDict):
    device_code: str


class DeviceTokenShape(TypedDict):
    token: str
    username: str
    scopes: list[Literal["read", "workspaces", "jobs", "volumes", "admin"]]
    expires_at: str


class DifferenceShape(TypedDict):
    dry_run: bool
    created: list[CreatedShape]
    changed: list[ChangedShape]
    deleted: list[ObjectShape]


class DistributedBody(TypedDict):
    nodes: NotRequired[int]
    processes_per_node: NotRequired[int]
    framework: Literal["torchrun", "ranks"]


class DoctorFindingShape(TypedDict):
    check: (
        Literal[
            "connection",
            "rights",
            "nodes",
            "agreement",
            "agents",
            "pools",
            "storage",
            "addresses",
            "figures",
            "isolation",
        ]
        | None
    )
    level: Literal["ok", "warn", "fail"]
    message: str
    hint: str
    yaml: str


class DoctorShape(TypedDict):
    results: list[DoctorFindingShape]


class DrainBody(TypedDict):
    why: NotRequired[str]
    minutes: NotRequired[int]


class DuplicateBody(TypedDict):
    name: NotRequired[str]


class EffectShape(TypedDict):
    id: str
    whom: str
    what: list[str]
    refused: str
    done: bool


class EffectsShape(TypedDict):
    notes: list[str]
    results: list[EffectShape]


class EndpointsShape(TypedDict):
    jupyter: str | None
    ssh: SSHShape | None
    code_server: str | None
    apps: list[AppShape]


class EntryShape(TypedDict):
    name: str
    kind: str
    size: int
    modified: int


class Error(TypedDict):
    code: str
    message: str
    hint: str
    fields: dict[str, list[str]]


class ErrorBody(TypedDict):
    error: Error


class EstimateBody(TypedDict):
    flavor: NotRequired[str]
    pool: NotRequired[str]
    gpu: NotRequired[GpuBody]
    gpus: NotRequired[float]
    gpu_memory_mib: NotRequired[int]
    cpu: NotRequired[float]
    memory_mib: NotRequired[int]
    disk_mib: NotRequired[int]
    max_runtime_minutes: NotRequired[int | None]
    idle_minutes: NotRequired[int | None]
    notify: NotRequired[bool]
    image: NotRequired[str]
    image_reference: NotRequired[str]
    env: NotRequired[dict[str, str]]
    secret_env: NotRequired[dict[str, str]]
    tenant: str
    name: str
    repository: NotRequired[str]
    priority: NotRequired[int]
    volumes: NotRequired[list[MountBody]]
    metrics: NotRequired[ExpositionBody | None]
    connections: NotRequired[list[str]]
    apps: NotRequired[list[AppBody]]
    nodes: NotRequired[int]


class EstimateShape(TypedDict):
    estimated_start: str | None
    estimated_from: str | None
    estimated_to: str | None
    confidence: Literal["likely", "rough", "unknown"]
    admissible: bool
    starts_now: bool
    position: int | None
    gpus_ahead: float | None
    borrows: bool
    reasons: list[ReasonShape]
    alternatives: list[dict[str, Any]]


class EventShape(TypedDict):
    id: int
    run: str | None
    at: str
    step: (
        Literal[
            "request",
            "admission",
            "disk",
            "container",
            "scheduled",
            "image",
            "mounts",
            "started",
            "endpoint",
            "ready",
        ]
        | None
    )
    level: Literal["info", "warning", "error"]
    code: str
    message: str
    hint: str
    data: dict[str, Any]
    post_mortem: str | None


class ExpositionBody(TypedDict):
    port: int
    path: NotRequired[str]


class ExpositionShape(TypedDict):
    port: int
    path: str


class ExtendBody(TypedDict):
    minutes: NotRequired[int]


class FailureShape(TypedDict):
    code: str
    message: str
    hint: str
    at: str
    post_mortem: str | None


class FindingShape(TypedDict):
    id: str
    cluster: str
    what: Literal["unwanted", "missing", "changed"]
    kind: str
    namespace: NotRequired[str]
    name: str
    uid: NotRequired[str]
    message: str
    differs: list[str]
    may: list[str]
    first_seen_at: str
    accepted_at: NotRequired[str | None]
    resolved_at: NotRequired[str | None]


class FirstPasswordShape(TypedDict):
    first_password: str | None


class Flavor(TypedDict):
    slug: str
    name: str
    pool: str
    gpus: float
    cpu: float
    memory_mib: int


class FlavorSettings(TypedDict):
    gpus: NotRequired[float]
    cpu: float
    slug: str
    name: str
    pool: str
    memory_mib: int


class FolderShape(TypedDict):
    entries: list[EntryShape]
    next: str | None
    free: int
    read_only: bool


class FoundLineShape(TypedDict):
    at: str
    index: int
    attempt: int
    run: str
    text: str
    after: str
    holder_kind: Literal["workspace", "job"]
    holder_id: str


class GPU(TypedDict):
    product: str | None
    memory_mib: int | None
    compute_capability: str | None
    ecc: bool | None


class GpuBody(TypedDict):
    min_memory_mib: NotRequired[int]
    min_compute_capability: NotRequired[str]
    ecc: NotRequired[bool]
    product: NotRequired[str]


class GpuShape(TypedDict):
    uuid: str
    index: NotRequired[int]
    name: NotRequired[str]
    memory_mib: NotRequired[int | None]
    ecc: NotRequired[bool | None]
    compute_capability: NotRequired[str]
    utilization_percent: NotRequired[int | None]
    memory_used_mib: NotRequired[int | None]
    temperature_celsius: NotRequired[int | None]
    power_watts: NotRequired[float | None]
    seen_at: NotRequired[str | None]
    out: OutShape | None


class IdleReportShape(TypedDict):
    since: str
    until: str
    assumed_minutes: int | None
    truncated: bool
    stops: int
    held_gpu_hours: float
    freed_gpu_hours: float
    results: list[WouldStopShape]
    people: list[WasteShape]
    tenants: list[WasteShape]


class IdleShape(TypedDict):
    since: str | None
    stops_at: str | None
    busy_by: list[str]


class ImageSettings(TypedDict):
    slug: str
    name: str
    description: NotRequired[str]
    reference: str
    version: NotRequired[str]
    cuda_version: NotRequired[str]
    frameworks: NotRequired[str]
    least_driver: NotRequired[str]
    offers_jupyter: NotRequired[bool]
    offers_ssh: NotRequired[bool]
    has_code_server: NotRequired[bool]
    uid: NotRequired[int]
    gid: NotRequired[int]
    username: NotRequired[str]
    home: NotRequired[str]
    shell: NotRequired[str]
    is_active: NotRequired[bool]


class ImageShape(TypedDict):
    slug: str
    name: str
    description: NotRequired[str]
    reference: str
    version: NotRequired[str]
    cuda_version: NotRequired[str]
    frameworks: NotRequired[str]
    least_driver: NotRequired[str]
    offers: list[str]
    uid: NotRequired[int]
    gid: NotRequired[int]
    username: NotRequired[str]
    home: NotRequired[str]
    shell: NotRequired[str]


class IndicesShape(TypedDict):
    total: int
    succeeded: int
    failed: int
    active: int


class InspectionShape(TypedDict):
    file_system: str
    size_mib: int
    used_mib: int
    uid: int
    names: list[str]
    more: int
    unreadable: bool


class JobBody(TypedDict):
    command: NotRequired[list[str]]
    script: NotRequired[str]
    notebook: NotRequired[str]
    completions: NotRequired[int]
    parallelism: NotRequired[int]
    retries: NotRequired[int]
    final_exit_codes: NotRequired[list[int]]
    sweep: NotRequired[Sweep | None]
    max_runtime_minutes: NotRequired[int | None]
    priority: NotRequired[int]
    notify: NotRequired[bool]
    ttl_hours: NotRequired[int | None]
    distributed: NotRequired[DistributedBody | None]
    checkpoints: NotRequired[CheckpointsBody | None]
    after: NotRequired[list[AfterBody]]
    writes: NotRequired[WritesBody | None]
    flavor: NotRequired[str]
    pool: NotRequired[str]
    gpu: NotRequired[GpuBody]
    gpus: NotRequired[float]
    gpu_memory_mib: NotRequired[int]
    cpu: NotRequired[float]
    memory_mib: NotRequired[int]
    image: NotRequired[str]
    image_reference: NotRequired[str]
    env: NotRequired[dict[str, str]]
    secret_env: NotRequired[dict[str, str]]
    tenant: str
    name: str
    repository: NotRequired[str]
    volumes: NotRequired[list[MountBody]]
    metrics: NotRequired[ExpositionBody | None]
    connections: NotRequired[list[str]]


class JobEventShape(TypedDict):
    id: int
    run: str | None
    at: str
    step: str | None
    level: Literal["info", "warning", "error"]
    code: str
    message: str
    hint: str
    data: dict[str, Any]


class JobFailureShape(TypedDict):
    code: str
    message: str
    hint: str
    at: str
    post_mortem: str | None


class JobProgressShape(TypedDict):
    fraction: float
    eta: str | None
    metrics: dict[str, float]


class JobShape(TypedDict):
    id: str
    tenant: str
    owner: str
    name: str
    image: str
    image_reference: str | None
    pool: str
    flavor: str | None
    gpus: float
    cpu: float
    memory_mib: int
    phase: Literal["waiting", "starting", "running", "succeeded", "failed", "cancelling", "cancelled"]
    message: str
    problem: ReasonShape | None
    queue: Any | None
    progress: JobProgressShape | None
    indices: IndicesShape
    attempts: list[AttemptShape]
    failure: JobFailureShape | None
    command: list[str] | None
    notebook: str | None
    env: dict[str, str] | None
    repository: str | None
    volumes: list[dict[str, Any]]
    completions: int
    parallelism: int
    retries: int
    final_exit_codes: list[int]
    sweep: Any | None
    distributed: DistributedBody | None
    checkpoints: CheckpointsBody | None
    after: list[AfterShape]
    writes: WritesShape | None
    priority: int
    max_runtime_minutes: int | None
    notify: bool
    metrics: ExpositionShape | None
    ttl_hours: int | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    deleted_at: str | None
    last_event: int


class JumpSSHShape(TypedDict):
    host: str
    port: int
    user: str
    command: str
    config: str
    nickname: str
    host_key_fingerprint: str
    known_hosts: str
    vscode: str
    jump_host_key_fingerprint: str


class JupyterShape(TypedDict):
    url: str
    token: str
    expires_at: str | None


class KeepBody(TypedDict):
    keep: NotRequired[list[int]]


class LastLineShape(TypedDict):
    at: str | None
    text: str


class LaunchBody(TypedDict):
    flavor: NotRequired[str]
    pool: NotRequired[str]
    gpu: NotRequired[GpuBody]
    gpus: NotRequired[float]
    gpu_memory_mib: NotRequired[int]
    cpu: NotRequired[float]
    memory_mib: NotRequired[int]
    disk_mib: NotRequired[int]
    max_runtime_minutes: NotRequired[int | None]
    idle_minutes: NotRequired[int | None]
    notify: NotRequired[bool]
    image: NotRequired[str]
    image_reference: NotRequired[str]
    env: NotRequired[dict[str, str]]
    secret_env: NotRequired[dict[str, str]]
    tenant: str
    name: str
    repository: NotRequired[str]
    priority: NotRequired[int]
    volumes: NotRequired[list[MountBody]]
    metrics: NotRequired[ExpositionBody | None]
    connections: NotRequired[list[str]]
    apps: NotRequired[list[AppBody]]


class LeaseShape(TypedDict):
    mode: Literal["free", "writer", "readers"]
    holders: list[str]
    waiting: list[str]


class LineShape(TypedDict):
    at: str
    index: int
    attempt: int
    run: str
    text: str
    after: str


class LogLimitSettings(TypedDict):
    tenant: str
    days: NotRequired[int | None]
    size_mib: NotRequired[int | None]


class MeShape(TypedDict):
    username: str
    email: str
    is_admin: bool
    language: str
    time_zone: str | None
    theme: str
    service_account: bool
    tenants: list[MyTenantShape]


class MemberShape(TypedDict):
    username: str
    role: NotRequired[Literal["owner", "member", "viewer"]]
    is_active: bool
    is_service_account: bool


class MetricsBody(TypedDict):
    step: NotRequired[int | None]
    values: dict[str, float]
    index: NotRequired[int]


class MetricsShape(TypedDict):
    window: str
    step_seconds: int
    series: list[SeriesShape]
    message: str
    is_simulated: bool


class MissingShape(TypedDict):
    code: str
    message: str


class MountBody(TypedDict):
    volume: str
    version: NotRequired[int | Literal["latest"] | None]
    path: str
    read_only: NotRequired[bool]


class MyTenantShape(TypedDict):
    slug: str
    name: str
    role: Literal["owner", "member", "viewer"]


class NewAgentToken(TypedDict):
    cluster: str
    name: str


class NewAnnouncement(TypedDict):
    text: str
    level: NotRequired[Literal["info", "warn", "bad"]]
    shown_from: NotRequired[str]
    shown_until: NotRequired[str | None]
    no_launches_from: NotRequired[str | None]


class NewDeviceCode(TypedDict):
    name: str
    scopes: NotRequired[list[Literal["read", "workspaces", "jobs", "volumes", "admin"]]]


class NewFolder(TypedDict):
    path: str


class NewMember(TypedDict):
    username: str
    role: NotRequired[Literal["owner", "member", "viewer"]]


class NewPath(TypedDict):
    to: str


class NewPerson(TypedDict):
    first_name: NotRequired[str]
    last_name: NotRequired[str]
    email: NotRequired[str]
    username: str
    sign_in: NotRequired[Literal["password", "sign-on"]]


class NewPersonShape(TypedDict):
    id: str
    username: str
    first_name: NotRequired[str]
    last_name: NotRequired[str]
    email: NotRequired[str]
    is_admin: bool
    is_active: NotRequired[bool]
    created_at: str
    last_login: NotRequired[str | None]
    memberships: list[PlaceShape]
    first_password: str | None


class NewRoute(TypedDict):
    name: str
    address: NotRequired[str]
    secret: NotRequired[str]
    least_severity: NotRequired[Literal["info", "warning", "critical"]]
    cluster: NotRequired[str | None]
    pool: NotRequired[str | None]
    escalates_after_minutes: NotRequired[int | None]
    every_minutes: NotRequired[int]
    enabled: NotRequired[bool]
    may_reach_inside: NotRequired[bool]
    way: Literal["admins", "mail", "webhook", "slack", "mattermost", "feishu", "dingtalk", "heartbeat"]
    tenant: NotRequired[str | None]


class NewSSHKey(TypedDict):
    name: str
    public_key: str


class NewServiceAccount(TypedDict):
    tenant: str
    name: str
    role: NotRequired[Literal["owner", "member", "viewer"]]


class NewServiceToken(TypedDict):
    name: str
    scopes: list[Literal["read", "workspaces", "jobs", "volumes"]]
    days: NotRequired[int]


class NewTenant(TypedDict):
    slug: str
    name: str


class NewToken(TypedDict):
    name: str
    scopes: list[Literal["read", "workspaces", "jobs", "volumes", "admin"]]
    tenant: NotRequired[str | None]
    days: NotRequired[int]


class NextSizeShape(TypedDict):
    pool: str
    flavor: str | None
    gpus: float
    cpu: float
    memory_mib: int
    message: str


class NodeChanged(TypedDict):
    cluster: str
    name: str
    changed: bool


class NodeShape(TypedDict):
    cluster: str
    name: str
    ready: NotRequired[bool]
    unschedulable: NotRequired[bool]
    labels: NotRequired[Any]
    taints: NotRequired[Any]
    allocatable: dict[str, int]
    system: dict[str, Any]
    conditions: dict[str, Any]
    out: OutShape | None
    gpus_out: OutShape | None
    gpus: list[GpuShape]


class NoteBody(TypedDict):
    note: NotRequired[str]


class NoticePreferencesShape(TypedDict):
    results: list[WaysShape]


class NoticeShape(TypedDict):
    id: str
    kind: Literal[
        "ready",
        "failed",
        "stopped",
        "stops_soon",
        "quota",
        "budget",
        "booking",
        "health",
        "job",
        "volume",
        "share",
        "service",
    ]
    at: str
    read_at: str | None
    title: str
    text: str
    hint: str
    path: str
    is_past: bool


class ObjectShape(TypedDict):
    kind: str
    key: str


class OutShape(TypedDict):
    code: str
    message: str
    hint: str


class PaginatedQuotaList(TypedDict):
    results: list[Quota]
    next: str | None
    limits: list[dict[str, Any]]


class PartShape(TypedDict):
    index: int
    parameters: dict[str, Any]
    phase: Literal["pending", "waiting", "starting", "running", "ending", "succeeded", "failed", "cancelled"]
    attempts: int
    failures: int
    metrics: dict[str, float]
    progress: float | None


class PatchedAnnouncementChange(TypedDict):
    text: NotRequired[str]
    level: NotRequired[Literal["info", "warn", "bad"]]
    shown_from: NotRequired[str]
    shown_until: NotRequired[str | None]
    no_launches_from: NotRequired[str | None]


class PatchedAppChangeBody(TypedDict):
    name: NotRequired[str]
    shared_with: NotRequired[Literal["me", "tenant"]]


PatchedBookingChangeBody = TypedDict(
    "PatchedBookingChangeBody",
    {"title": NotRequired[str], "places": NotRequired[int], "from": NotRequired[str], "to": NotRequired[str]},
)


class PatchedBudgetChanges(TypedDict):
    gpu_hours: NotRequired[float]
    grace_minutes: NotRequired[int]


class PatchedChangeBody(TypedDict):
    flavor: NotRequired[str]
    pool: NotRequired[str]
    gpu: NotRequired[GpuBody]
    gpus: NotRequired[float]
    gpu_memory_mib: NotRequired[int]
    cpu: NotRequired[float]
    memory_mib: NotRequired[int]
    disk_mib: NotRequired[int]
    max_runtime_minutes: NotRequired[int | None]
    idle_minutes: NotRequired[int | None]
    notify: NotRequired[bool]
    name: NotRequired[str]
    image: NotRequired[str]
    image_reference: NotRequired[str]
    env: NotRequired[dict[str, str]]
    secret_env: NotRequired[dict[str, str | None]]
    repository: NotRequired[str]
    volumes: NotRequired[list[MountBody]]
    metrics: NotRequired[ExpositionBody | None]
    new_disk: NotRequired[bool]


class PatchedChangedRoute(TypedDict):
    name: NotRequired[str]
    address: NotRequired[str]
    secret: NotRequired[str]
    least_severity: NotRequired[Literal["info", "warning", "critical"]]
    cluster: NotRequired[str | None]
    pool: NotRequired[str | None]
    escalates_after_minutes: NotRequired[int | None]
    every_minutes: NotRequired[int]
    enabled: NotRequired[bool]
    may_reach_inside: NotRequired[bool]


class PatchedClusterChanges(TypedDict):
    kubeconfig: NotRequired[str | None]
    registries: NotRequired[list[Registry]]
    without_isolation: NotRequired[bool]
    name: NotRequired[str]
    connection: NotRequired[Literal["in-cluster", "kubeconfig", "pasted"]]
    kubeconfig_path: NotRequired[str]
    context: NotRequired[str]
    exposure: NotRequired[Literal["load-balancer", "node-port", "portal"]]
    node_address: NotRequired[str]
    ssh_service_port: NotRequired[int]
    keeps_addresses: NotRequired[bool]
    prometheus_url: NotRequired[str]
    prometheus_token_path: NotRequired[str]
    home_class: NotRequired[str]
    home_mib: NotRequired[int]
    disk_class: NotRequired[str]
    dataset_class: NotRequired[str]
    shared_classes: NotRequired[list[str]]
    image_pull_secrets: NotRequired[list[str]]
    validation_image: NotRequired[str]
    files_image: NotRequired[str]
    files_uid: NotRequired[int]
    http_proxy: NotRequired[str]
    https_proxy: NotRequired[str]
    no_proxy: NotRequired[str]
    pod_environment: NotRequired[str]
    trusted_certificates: NotRequired[str]
    pod_cidrs: NotRequired[list[str]]
    service_cidrs: NotRequired[list[str]]
    api_cidrs: NotRequired[list[str]]
    denied_cidrs: NotRequired[list[str]]
    allowed_cidrs: NotRequired[list[str]]
    metrics_namespace: NotRequired[str]


class PatchedConnectionChangeBody(TypedDict):
    name: NotRequired[str]
    endpoint: NotRequired[str]
    bucket: NotRequired[str]
    access_key: NotRequired[str]
    secret_key: NotRequired[str]


class PatchedFlavorChanges(TypedDict):
    gpus: NotRequired[float]
    cpu: NotRequired[float]
    name: NotRequired[str]
    pool: NotRequired[str]
    memory_mib: NotRequired[int]


class PatchedImageChanges(TypedDict):
    name: NotRequired[str]
    description: NotRequired[str]
    reference: NotRequired[str]
    version: NotRequired[str]
    cuda_version: NotRequired[str]
    frameworks: NotRequired[str]
    least_driver: NotRequired[str]
    offers_jupyter: NotRequired[bool]
    offers_ssh: NotRequired[bool]
    has_code_server: NotRequired[bool]
    uid: NotRequired[int]
    gid: NotRequired[int]
    username: NotRequired[str]
    home: NotRequired[str]
    shell: NotRequired[str]
    is_active: NotRequired[bool]


class PatchedLogLimitChanges(TypedDict):
    days: NotRequired[int | None]
    size_mib: NotRequired[int | None]


class PatchedMyPreferences(TypedDict):
    language: NotRequired[Literal["en", "zh-hans", "ko"] | Literal[""]]
    time_zone: NotRequired[str]
    theme: NotRequired[Literal["light", "dark"] | Literal[""]]


class PatchedNewPath(TypedDict):
    to: NotRequired[str]


class PatchedNewRole(TypedDict):
    role: NotRequired[Literal["owner", "member", "viewer"]]


class PatchedNoticePreferencesShape(TypedDict):
    results: NotRequired[list[WaysShape]]


class PatchedPersonChange(TypedDict):
    first_name: NotRequired[str]
    last_name: NotRequired[str]
    email: NotRequired[str]
    is_active: NotRequired[bool]
    is_admin: NotRequired[bool]


class PatchedPoolChanges(TypedDict):
    name: NotRequired[str]
    cluster: NotRequired[str]
    match_product: NotRequired[str]
    match_gpu_memory_mib: NotRequired[int | None]
    match_compute_capability: NotRequired[str]
    match_ecc: NotRequired[bool | None]
    node_labels: NotRequired[dict[str, Any]]
    tolerations: NotRequired[list[Any]]
    sharing: NotRequired[Literal["exclusive", "mig", "time-slicing", "mps", "hami", "gpu-manager"]]
    resource_name: NotRequired[str]
    units_per_gpu: NotRequired[int]
    mig_profile: NotRequired[str]
    one_unit_each: NotRequired[bool]
    gpu_product: NotRequired[str]
    gpu_memory_mib: NotRequired[int | None]
    unit_memory_mib: NotRequired[int | None]
    compute_capability: NotRequired[str]
    ecc: NotRequired[bool | None]
    weight: NotRequired[float]
    runtime_class: NotRequired[str]
    extra_resources: NotRequired[dict[str, Any]]
    image_pull_secrets: NotRequired[list[Any]]
    driver_path: NotRequired[str]
    cpu_overcommit: NotRequired[float]
    memory_overcommit: NotRequired[float]
    is_open: NotRequired[bool]


class PatchedQuotaChanges(TypedDict):
    nominal_gpus: NotRequired[int]
    borrowing_limit_gpus: NotRequired[int]
    weight: NotRequired[int]


class PatchedTemplateChange(TypedDict):
    name: NotRequired[str]
    launch: NotRequired[TemplateLaunch]


class PatchedTenantChanges(TypedDict):
    name: NotRequired[str]


class PatchedTenantLimitChanges(TypedDict):
    cpu_millicores: NotRequired[int | None]
    memory_mib: NotRequired[int | None]
    workspaces: NotRequired[int | None]
    storage_mib: NotRequired[int | None]
    homes_mib: NotRequired[int | None]
    disks_mib: NotRequired[int | None]
    datasets_mib: NotRequired[int | None]
    longest_runtime_minutes: NotRequired[int | None]
    person_gpus: NotRequired[int | None]
    person_workspaces: NotRequired[int | None]
    person_storage_mib: NotRequired[int | None]
    image_prefixes: NotRequired[str]


class PatchedVolumeChangeBody(TypedDict):
    size_mib: NotRequired[int]
    name: NotRequired[str]
    shared: NotRequired[Literal["no", "read", "write"]]
    main: NotRequired[Literal[True]]


class PersonShape(TypedDict):
    id: str
    username: str
    first_name: NotRequired[str]
    last_name: NotRequired[str]
    email: NotRequired[str]
    is_admin: bool
    is_active: NotRequired[bool]
    created_at: str
    last_login: NotRequired[str | None]
    memberships: list[PlaceShape]


PipelineEdgeShape = TypedDict(
    "PipelineEdgeShape",
    {
        "from": str,
        "to": str,
        "kind": "Literal['after', 'writes', 'reads']",
        "on": "Literal['success', 'end'] | None",
    },
)


class PipelineNodeShape(TypedDict):
    id: str
    kind: Literal["job", "version"]
    name: str
    phase: str | None
    owner: str | None
    number: int | None
    volume: str | None


class PipelineShape(TypedDict):
    nodes: list[PipelineNodeShape]
    edges: list[PipelineEdgeShape]
    is_whole: bool


class PlaceShape(TypedDict):
    tenant: str
    role: Literal["owner", "member", "viewer"]
    by_group: bool


class PointShape(TypedDict):
    step: int
    value: float
    at: str


class Pool(TypedDict):
    slug: str
    name: str
    cluster: str
    gpu: GPU
    unit_memory_mib: int | None
    units_per_gpu: int
    sharing: Literal["exclusive", "mig", "time-slicing", "mps", "hami", "gpu-manager"] | None
    isolation: str | None
    neighbours: str | None
    gives: str | None
    gpus: PoolGPUs
    counted: PoolCounts
    largest_free_on_one_node: float
    nodes: PoolNodes
    out: PoolOut
    waiting: int
    next_free_at: str | None


class PoolCounts(TypedDict):
    total: float
    free: float
    booked: float
    mine: float
    largest: float


class PoolGPUs(TypedDict):
    total: float
    free: float
    mine: float


class PoolNodes(TypedDict):
    total: int
    ready: int


class PoolOut(TypedDict):
    nodes_not_ready: int
    nodes_cordoned: int
    nodes_unwell: int
    nodes_tainted: int
    gpus: float
    broken_gpus: float


class PoolSettings(TypedDict):
    slug: str
    name: str
    cluster: str
    match_product: NotRequired[str]
    match_gpu_memory_mib: NotRequired[int | None]
    match_compute_capability: NotRequired[str]
    match_ecc: NotRequired[bool | None]
    node_labels: NotRequired[dict[str, Any]]
    tolerations: NotRequired[list[Any]]
    sharing: NotRequired[Literal["exclusive", "mig", "time-slicing", "mps", "hami", "gpu-manager"]]
    resource_name: NotRequired[str]
    units_per_gpu: NotRequired[int]
    mig_profile: NotRequired[str]
    one_unit_each: NotRequired[bool]
    gpu_product: NotRequired[str]
    gpu_memory_mib: NotRequired[int | None]
    unit_memory_mib: NotRequired[int | None]
    compute_capability: NotRequired[str]
    ecc: NotRequired[bool | None]
    weight: NotRequired[float]
    runtime_class: NotRequired[str]
    extra_resources: NotRequired[dict[str, Any]]
    image_pull_secrets: NotRequired[list[Any]]
    driver_path: NotRequired[str]
    cpu_overcommit: NotRequired[float]
    memory_overcommit: NotRequired[float]
    is_open: NotRequired[bool]


class PostMortemNoteBody(TypedDict):
    text: str


class PostMortemNoteShape(TypedDict):
    id: str
    author: str
    at: str
    text: str


class PostMortemShape(TypedDict):
    id: str
    tenant: str
    owner: str
    workspace: str | None
    job: str | None
    name: str
    index: int | None
    attempt: int | None
    cluster: str | None
    node: str | None
    pool: str | None
    image: str | None
    gpus: list[str]
    happened: Literal["failed", "evicted", "interrupted", "restarted", "rejected", "lost"]
    verdict: VerdictShape
    exit_code: int | None
    started_at: str | None
    ended_at: str
    is_complete: bool


class ProblemShape(TypedDict):
    code: str
    message: str
    hint: str


class ProgressShape(TypedDict):
    step: Literal[
        "request",
        "admission",
        "disk",
        "container",
        "scheduled",
        "image",
        "mounts",
        "started",
        "endpoint",
        "ready",
    ]
    index: int
    total: int
    since: str


class PublishedShape(TypedDict):
    id: str
    number: int
    phase: str


class PullProblemShape(TypedDict):
    code: str
    message: str
    hint: str


class QueueShape(TypedDict):
    estimated_start: str | None
    estimated_from: str | None
    estimated_to: str | None
    confidence: Literal["likely", "rough", "unknown"]
    position: int
    ahead: int
    gpus_ahead: float
    reason: ReasonShape


class Quota(TypedDict):
    tenant: str
    pool: str
    nominal_gpus: float
    borrowed_gpus: float
    used_gpus: float
    limit_gpus: float
    weight: int
    longest_runtime_minutes: int | None


class QuotaSettings(TypedDict):
    tenant: str
    pool: str
    nominal_gpus: NotRequired[int]
    borrowing_limit_gpus: NotRequired[int]
    weight: NotRequired[int]


class RankShape(TypedDict):
    index: int
    node: str | None
    exit_code: int | None
    reason: str | None


class ReasonShape(TypedDict):
    code: str
    message: str
    hint: str


class ReclaimShape(TypedDict):
    code: str
    message: str
    hint: str
    at: str


class Registry(TypedDict):
    host: str
    username: str
    password: str


class ReportedSeriesShape(TypedDict):
    name: str
    points: list[PointShape]


class ReportedShape(TypedDict):
    index: int
    progress: float | None
    metrics: dict[str, float]
    series: list[ReportedSeriesShape]


class RouteShape(TypedDict):
    id: str
    name: str
    way: Literal["admins", "mail", "webhook", "slack", "mattermost", "feishu", "dingtalk", "heartbeat"]
    host: str
    has_secret: bool
    least_severity: Literal["info", "warning", "critical"]
    cluster: str | None
    pool: str | None
    tenant: str | None
    escalates_after_minutes: int | None
    every_minutes: int | None
    enabled: bool
    last_beat_at: str | None
    beat_error: str
    created_at: str


class SSHKeyShape(TypedDict):
    id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: str


class SSHShape(TypedDict):
    host: str
    port: int
    user: str
    command: str
    config: str
    nickname: str
    host_key_fingerprint: str
    known_hosts: str
    vscode: str
    jump_host_key_fingerprint: NotRequired[str]
    jump: JumpSSHShape | None
    by_name: JumpSSHShape | None


class ScheduleBody(TypedDict):
    start: str
    stop: str
    days: list[int]
    time_zone: str
    is_on: NotRequired[bool]


class ScheduleShape(TypedDict):
    start: str
    stop: str
    days: list[int]
    time_zone: str
    is_on: bool
    next: TurnShape | None


class SeriesShape(TypedDict):
    name: str
    unit: str
    label: str
    points: list[list[float | None]]


class ServiceAccountShape(TypedDict):
    id: str
    tenant: str
    username: str
    role: Literal["owner", "member", "viewer"]
    responsible: NotRequired[str]
    works: bool
    created_at: str


class SessionShape(TypedDict):
    phase: Literal["starting", "ready", "ending", "none"]
    by: str | None
    created_at: str | None
    problem: Any | None
    read_only: bool


class ShareBody(TypedDict):
    username: str
    role: Literal["look", "work"]


class ShareShape(TypedDict):
    id: str
    username: str
    role: Literal["look", "work"]
    created_at: str


class SilenceBody(TypedDict):
    minutes: int


class SnapshotShape(TypedDict):
    id: str
    number: int | None
    note: str
    size_mib: int
    created_at: str
    by: str
    phase: str
    problem: ProblemShape | None


class SourceBody(TypedDict):
    snapshot: NotRequired[str]
    volume: NotRequired[str]


class StartProblemShape(TypedDict):
    code: str
    message: str
    hint: str
    since: str | None
    gives_up_at: str | None


class Sweep(TypedDict):
    parameters: NotRequired[dict[str, list[Any]]]
    points: NotRequired[list[dict[str, Any]]]
    parallelism: NotRequired[int]


class TemplateBody(TypedDict):
    tenant: str
    name: str
    launch: TemplateLaunch


class TemplateLaunch(TypedDict):
    image: NotRequired[str]
    image_reference: NotRequired[str]
    flavor: NotRequired[str]
    pool: NotRequired[str]
    gpu: NotRequired[GpuBody]
    gpus: NotRequired[float]
    gpu_memory_mib: NotRequired[int]
    cpu: NotRequired[float]
    memory_mib: NotRequired[int]
    disk_mib: NotRequired[int]
    max_runtime_minutes: NotRequired[int | None]
    idle_minutes: NotRequired[int | None]
    notify: NotRequired[bool]
    repository: NotRequired[str]
    volumes: NotRequired[list[MountBody]]
    apps: NotRequired[list[AppBody]]
    env: NotRequired[dict[str, str]]
    secret_names: NotRequired[list[str]]


class TemplateShape(TypedDict):
    id: str
    tenant: str
    name: str
    launch: Any
    created_by: NotRequired[str | None]
    created_at: str
    changed_at: str


class TenantLimitSettings(TypedDict):
    tenant: str
    cpu_millicores: NotRequired[int | None]
    memory_mib: NotRequired[int | None]
    workspaces: NotRequired[int | None]
    storage_mib: NotRequired[int | None]
    homes_mib: NotRequired[int | None]
    disks_mib: NotRequired[int | None]
    datasets_mib: NotRequired[int | None]
    longest_runtime_minutes: NotRequired[int | None]
    person_gpus: NotRequired[int | None]
    person_workspaces: NotRequired[int | None]
    person_storage_mib: NotRequired[int | None]
    image_prefixes: NotRequired[str]


class TenantSettings(TypedDict):
    slug: str
    name: str


class TenantShape(TypedDict):
    id: str
    slug: str
    name: str
    created_at: str


class TicketShape(TypedDict):
    ticket: str
    expires_at: str


class TokenShape(TypedDict):
    id: str
    name: str
    prefix: str
    scopes: list[Literal["read", "workspaces", "jobs", "volumes", "admin"]]
    tenant: str | None
    created_at: str
    expires_at: str
    last_used_at: NotRequired[str | None]


class TokenWithSecretShape(TypedDict):
    id: str
    name: str
    prefix: str
    scopes: list[Literal["read", "workspaces", "jobs", "volumes", "admin"]]
    tenant: str | None
    created_at: str
    expires_at: str
    last_used_at: NotRequired[str | None]
    secret: str


class TransferBody(TypedDict):
    username: str


class TurnShape(TypedDict):
    at: str
    action: Literal["start", "stop"]


class UnexplainedShape(TypedDict):
    id: str
    source: str
    text: str
    count: NotRequired[int]
    first_at: str
    last_at: str
    cluster: str | None
    dismissed_at: NotRequired[str | None]


class UploadShape(TypedDict):
    received: int
    size: int
    done: NotRequired[bool]


class UsageFigures(TypedDict):
    allocated_gpu_hours: float
    weighted_gpu_hours: float
    used_gpu_hours: float | None
    storage_gib_months: float | None


class UsageRow(TypedDict):
    allocated_gpu_hours: float
    weighted_gpu_hours: float
    used_gpu_hours: float | None
    storage_gib_months: float | None
    tenant: NotRequired[str]
    user: NotRequired[str | None]
    pool: NotRequired[str]
    day: NotRequired[str]


UsageShape = TypedDict(
    "UsageShape",
    {
        "from": str,
        "to": str,
        "group_by": "Literal['tenant', 'user', 'pool', 'day']",
        "total": "UsageFigures",
        "results": "list[UsageRow]",
        "next": str | None,
    },
)


class VerdictShape(TypedDict):
    code: str
    message: str
    hint: str
    from_log: bool


VolumeBody = TypedDict(
    "VolumeBody",
    {
        "tenant": str,
        "cluster": NotRequired[str],
        "name": str,
        "kind": "Literal['home', 'disk', 'dataset', 'scratch']",
        "size_mib": int,
        "shared": "NotRequired[Literal['no', 'read', 'write']]",
        "from": "NotRequired[SourceBody | None]",
    },
)


class VolumeCloneBody(TypedDict):
    name: str


class VolumeShape(TypedDict):
    id: str
    tenant: str
    owner: str
    cluster: str
    name: str
    kind: Literal["home", "disk", "dataset", "scratch"]
    shared: Literal["no", "read", "write"]
    main: bool
    size_mib: int
    requested_mib: int
    used_mib: int | None
    used_at: str | None
    phase: Literal["pending", "ready", "growing", "in_bin", "deleting", "failed", "deleted"]
    problem: ProblemShape | None
    node: str | None
    enforced: bool
    access: list[Literal["rwx", "rwo", "rwop", "rox"]]
    mounts: list[dict[str, Any]]
    lease: LeaseShape
    adoption: AdoptionShape | None
    versions: list[SnapshotShape]
    bin_until: str | None
    created_at: str


class WarmImageShape(TypedDict):
    image: str
    nodes_ready: int
    nodes: int
    problem: PullProblemShape | None


class WasteShape(TypedDict):
    tenant: str
    owner: NotRequired[str]
    held_gpu_hours: float
    freed_gpu_hours: float
    stops: int


class WaysShape(TypedDict):
    kind: Literal[
        "ready",
        "failed",
        "stopped",
        "stops_soon",
        "quota",
        "budget",
        "booking",
        "health",
        "job",
        "volume",
        "share",
        "service",
    ]
    in_berth: bool
    by_mail: bool


class WholePostMortemShape(TypedDict):
    id: str
    tenant: str
    owner: str
    workspace: str | None
    job: str | None
    name: str
    index: int | None
    attempt: int | None
    cluster: str | None
    node: str | None
    pool: str | None
    image: str | None
    gpus: list[str]
    happened: Literal["failed", "evicted", "interrupted", "restarted", "rejected", "lost"]
    verdict: VerdictShape
    exit_code: int | None
    started_at: str | None
    ended_at: str
    is_complete: bool
    size: Any | None
    nodes: list[str]
    gpu_facts: Any
    gpu_use_percent: float | None
    gpu_memory_peak_mib: int | None
    memory_peak_mib: int | None
    ends: Any
    pods: Any
    oom_kills: Any | None
    xids: Any
    events: Any
    volumes: Any
    node_then: Any | None
    agent_then: Any | None
    troubles: Any
    story: Any
    namespace_deleted_at: str | None
    log: list[LastLineShape] | None
    missing: list[MissingShape]
    notes: list[PostMortemNoteShape]
    alike: list[AlikeShape]


class WorkspaceJobBody(TypedDict):
    command: NotRequired[list[str]]
    script: NotRequired[str]
    notebook: NotRequired[str]
    completions: NotRequired[int]
    parallelism: NotRequired[int]
    retries: NotRequired[int]
    final_exit_codes: NotRequired[list[int]]
    sweep: NotRequired[Sweep | None]
    max_runtime_minutes: NotRequired[int | None]
    priority: NotRequired[int]
    notify: NotRequired[bool]
    ttl_hours: NotRequired[int | None]
    distributed: NotRequired[DistributedBody | None]
    checkpoints: NotRequired[CheckpointsBody | None]
    after: NotRequired[list[AfterBody]]
    writes: NotRequired[WritesBody | None]
    env: NotRequired[dict[str, str]]
    secret_env: NotRequired[dict[str, str]]
    name: NotRequired[str]


class WorkspaceShape(TypedDict):
    id: str
    tenant: str
    owner: str
    name: str
    shared_with_me: Literal["look", "work"] | None
    image: str
    pool: str
    flavor: str | None
    gpus: float
    gpu_memory_mib: int | None
    cpu: float
    memory_mib: int
    disk_mib: int
    env: dict[str, str] | None
    repository: str | None
    priority: int
    desired: Literal["running", "stopped", "deleted"]
    phase: Literal["waiting", "starting", "ready", "stopping", "stopped", "failed", "deleting", "deleted"]
    message: str
    queue: QueueShape | None
    progress: ProgressShape
    endpoints: EndpointsShape
    failure: FailureShape | None
    problem: StartProblemShape | None
    volumes: list[dict[str, Any]]
    node: str | None
    created_at: str
    started_at: str | None
    ready_at: str | None
    deleted_at: str | None
    stops_at: str | None
    reclaim: ReclaimShape | None
    max_runtime_minutes: int | None
    idle_minutes: int | None
    notify: bool
    metrics: ExpositionShape | None
    restart_needed: bool
    pending_restart: list[Literal["size", "volumes", "image", "env", "secret_env", "repository"]]
    image_reference: str | None
    next_image: str | None
    next_env: dict[str, str] | None
    next_repository: str | None
    next_image_reference: str | None
    previous_image: str | None
    next_size: NextSizeShape | None
    next_volumes: list[dict[str, Any]] | None
    idle: IdleShape
    last_event: int


class WouldStopShape(TypedDict):
    workspace: str
    name: str
    run: str
    tenant: str
    owner: str
    pool: str
    gpus: float
    idle_since: str
    would_stop_at: str
    idle_until: str
    freed_gpu_hours: float


class WritesBody(TypedDict):
    volume: str


class WritesShape(TypedDict):
    volume: str
    name: str
    version: PublishedShape | None
