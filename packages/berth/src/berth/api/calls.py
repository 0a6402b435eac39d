"""Requests of the API, one function for each operation.

Written by `make client` from the API's schema: change that, not this file.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

from .call import Call, Content, Page, place
from .shapes import (
    ActionBody,
    ActionsShape,
    AddedHours,
    AdoptBody,
    AgentTokenShape,
    AgentTokenWithSecretShape,
    AlertMemberShape,
    AlertShape,
    AnnouncementShape,
    AppBody,
    AppShape,
    AuditShape,
    BookingBody,
    BookingShape,
    BudgetSettings,
    BudgetShape,
    ClassBody,
    ClassShape,
    ClassWithPeopleShape,
    CloneBody,
    CloseBody,
    ClusterSettings,
    ClusterShape,
    CollectBody,
    ConnectionBody,
    ConnectionShape,
    DeleteBody,
    DeliveryShape,
    DeviceCodeShape,
    DeviceTokenBody,
    DeviceTokenShape,
    DifferenceShape,
    DoctorShape,
    DrainBody,
    DuplicateBody,
    EffectsShape,
    EstimateBody,
    EstimateShape,
    EventShape,
    ExtendBody,
    FindingShape,
    FirstPasswordShape,
    Flavor,
    FlavorSettings,
    FolderShape,
    FoundLineShape,
    IdleReportShape,
    ImageSettings,
    ImageShape,
    JobBody,
    JobEventShape,
    JobShape,
    JupyterShape,
    KeepBody,
    LaunchBody,
    LineShape,
    LogLimitSettings,
    MemberShape,
    MeShape,
    MetricsBody,
    MetricsShape,
    NewAgentToken,
    NewAnnouncement,
    NewDeviceCode,
    NewFolder,
    NewMember,
    NewPath,
    NewPerson,
    NewPersonShape,
    NewRoute,
    NewServiceAccount,
    NewServiceToken,
    NewSSHKey,
    NewTenant,
    NewToken,
    NodeChanged,
    NodeShape,
    NoteBody,
    NoticePreferencesShape,
    NoticeShape,
    PaginatedQuotaList,
    PartShape,
    PatchedAnnouncementChange,
    PatchedAppChangeBody,
    PatchedBookingChangeBody,
    PatchedBudgetChanges,
    PatchedChangeBody,
    PatchedChangedRoute,
    PatchedClusterChanges,
    PatchedConnectionChangeBody,
    PatchedFlavorChanges,
    PatchedImageChanges,
    PatchedLogLimitChanges,
    PatchedMyPreferences,
    PatchedNewPath,
    PatchedNewRole,
    PatchedNoticePreferencesShape,
    PatchedPersonChange,
    PatchedPoolChanges,
    PatchedQuotaChanges,
    PatchedTemplateChange,
    PatchedTenantChanges,
    PatchedTenantLimitChanges,
    PatchedVolumeChangeBody,
    PersonShape,
    PipelineShape,
    Pool,
    PoolSettings,
    PostMortemNoteBody,
    PostMortemNoteShape,
    PostMortemShape,
    QuotaSettings,
    ReportedShape,
    RouteShape,
    ScheduleBody,
    ScheduleShape,
    ServiceAccountShape,
    SessionShape,
    ShareBody,
    ShareShape,
    SilenceBody,
    SnapshotShape,
    SSHKeyShape,
    TemplateBody,
    TemplateShape,
    TenantLimitSettings,
    TenantSettings,
    TenantShape,
    TicketShape,
    TokenShape,
    TokenWithSecretShape,
    TransferBody,
    UnexplainedShape,
    UploadShape,
    UsageShape,
    VolumeBody,
    VolumeCloneBody,
    VolumeShape,
    WholePostMortemShape,
    WorkspaceJobBody,
    WorkspaceShape,
)


def admin_actions_retrieve() -> Call[ActionsShape]:
    """Return actions of the admin's lists (admins)."""
    return Call("GET", "admin-actions/")


def admin_actions_create(of: str, action: str, body: ActionBody) -> Call[EffectsShape]:
    """Preview an action of the admin's lists, or do it (admins)."""
    return Call("POST", f"admin-actions/{place(of)}/{place(action)}/", body=body)


class AgentTokensListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    search: str


def agent_tokens_list(**query: Unpack[AgentTokensListQuery]) -> Call[Page[AgentTokenShape]]:
    """Return tokens of nodes' agents (admins)."""
    return Call("GET", "agent-tokens/", query=query)


def agent_tokens_create(body: NewAgentToken) -> Call[AgentTokenWithSecretShape]:
    """Create a token for the agents of a cluster; only this response contains its secret."""
    return Call("POST", "agent-tokens/", body=body)


def agent_tokens_destroy(id: str) -> Call[None]:
    """Revoke a token of nodes' agents (admins)."""
    return Call("DELETE", f"agent-tokens/{place(id)}/")


def agent_health_create(body: dict[str, Any] | None = None) -> Call[None]:
    """Report problems of a node, without samples (agents)."""
    return Call("POST", "agent/health/", body=body)


def agent_samples_create(body: dict[str, Any] | None = None) -> Call[None]:
    """Report GPU samples of a node (agents)."""
    return Call("POST", "agent/samples/", body=body)


class AlertRoutesListQuery(TypedDict, total=False):
    cursor: str
    limit: int


def alert_routes_list(**query: Unpack[AlertRoutesListQuery]) -> Call[Page[RouteShape]]:
    """Return routes by which alerts are sent."""
    return Call("GET", "alert-routes/", query=query)


def alert_routes_create(body: NewRoute) -> Call[RouteShape]:
    """Create a route for alerts (admins; owners for their tenant)."""
    return Call("POST", "alert-routes/", body=body)


def alert_routes_partial_update(id: str, body: PatchedChangedRoute | None = None) -> Call[RouteShape]:
    """Change a route for alerts."""
    return Call("PATCH", f"alert-routes/{place(id)}/", body=body)


def alert_routes_destroy(id: str) -> Call[None]:
    """Delete a route for alerts."""
    return Call("DELETE", f"alert-routes/{place(id)}/")


class AlertRoutesDeliveriesListQuery(TypedDict, total=False):
    cursor: str
    limit: int


def alert_routes_deliveries_list(
    id: str, **query: Unpack[AlertRoutesDeliveriesListQuery]
) -> Call[Page[DeliveryShape]]:
    """Return messages by an alert route."""
    return Call("GET", f"alert-routes/{place(id)}/deliveries/", query=query)


def alert_routes_test_create(id: str) -> Call[DeliveryShape]:
    """Send a test by a route for alerts."""
    return Call("POST", f"alert-routes/{place(id)}/test/")


class AlertsListQuery(TypedDict, total=False):
    cluster: str
    code: str
    cursor: str
    limit: int
    severity: Literal["info", "warning", "critical"]
    state: Literal["firing", "acknowledged", "silenced", "resolved"]


def alerts_list(**query: Unpack[AlertsListQuery]) -> Call[Page[AlertShape]]:
    """Return alerts: what is wrong, grouped."""
    return Call("GET", "alerts/", query=query)


def alerts_retrieve(id: str) -> Call[AlertShape]:
    """Return an alert."""
    return Call("GET", f"alerts/{place(id)}/")


def alerts_acknowledge_create(id: str) -> Call[AlertShape]:
    """Acknowledge an alert: it is not escalated any more."""
    return Call("POST", f"alerts/{place(id)}/acknowledge/")


class AlertsDeliveriesListQuery(TypedDict, total=False):
    cursor: str
    limit: int


def alerts_deliveries_list(id: str, **query: Unpack[AlertsDeliveriesListQuery]) -> Call[Page[DeliveryShape]]:
    """Return messages about an alert."""
    return Call("GET", f"alerts/{place(id)}/deliveries/", query=query)


class AlertsMembersListQuery(TypedDict, total=False):
    cursor: str
    limit: int


def alerts_members_list(id: str, **query: Unpack[AlertsMembersListQuery]) -> Call[Page[AlertMemberShape]]:
    """Return what an alert consists of."""
    return Call("GET", f"alerts/{place(id)}/members/", query=query)


def alerts_resolve_create(id: str) -> Call[AlertShape]:
    """Resolve an alert by hand."""
    return Call("POST", f"alerts/{place(id)}/resolve/")


def alerts_silence_create(id: str, body: SilenceBody) -> Call[AlertShape]:
    """Send nothing about an alert for some time."""
    return Call("POST", f"alerts/{place(id)}/silence/", body=body)


class AnnouncementsListQuery(TypedDict, total=False):
    cursor: str
    level: Literal["bad", "info", "warn"]
    limit: int
    search: str


def announcements_list(**query: Unpack[AnnouncementsListQuery]) -> Call[Page[AnnouncementShape]]:
    """Return announcements that are shown now, and maintenance."""
    return Call("GET", "announcements/", query=query)


def announcements_create(body: NewAnnouncement) -> Call[AnnouncementShape]:
    """Announce something, or maintenance (admins)."""
    return Call("POST", "announcements/", body=body)


def announcements_partial_update(
    id: str, body: PatchedAnnouncementChange | None = None
) -> Call[AnnouncementShape]:
    """Change an announcement (admins)."""
    return Call("PATCH", f"announcements/{place(id)}/", body=body)


def announcements_destroy(id: str) -> Call[None]:
    """End an announcement now, and its maintenance (admins)."""
    return Call("DELETE", f"announcements/{place(id)}/")


class AuditListQuery(TypedDict, total=False):
    action: str
    actor: str
    cursor: str
    format: Literal["csv", "json"]
    limit: int
    outcome: str
    search: str
    since: str
    tenant: str
    until: str


def audit_list(**query: Unpack[AuditListQuery]) -> Call[Page[AuditShape]]:
    """Return changes and refused attempts (owners: their tenants; admins: all)."""
    return Call("GET", "audit/", query=query)


BookingsListQuery = TypedDict(
    "BookingsListQuery",
    {
        "cursor": str,
        "from": str,
        "limit": int,
        "pool": str,
        "search": str,
        "state": "list[Literal['cancelled', 'over', 'running', 'upcoming']]",
        "tenant": str,
        "to": str,
    },
    total=False,
)


def bookings_list(**query: Unpack[BookingsListQuery]) -> Call[Page[BookingShape]]:
    """Return when GPUs are booked."""
    return Call("GET", "bookings/", query=query)


def bookings_create(body: BookingBody) -> Call[BookingShape]:
    """Book GPUs of a pool (owners)."""
    return Call("POST", "bookings/", body=body)


def bookings_retrieve(id: str) -> Call[BookingShape]:
    """Return one booking of a tenant of yours."""
    return Call("GET", f"bookings/{place(id)}/")


def bookings_partial_update(id: str, body: PatchedBookingChangeBody | None = None) -> Call[BookingShape]:
    """Change its title, time or number of places (owners)."""
    return Call("PATCH", f"bookings/{place(id)}/", body=body)


def bookings_destroy(id: str) -> Call[BookingShape]:
    """Cancel a booking, or end it now (owners)."""
    return Call("DELETE", f"bookings/{place(id)}/")


def budget_hours_add(body: AddedHours) -> Call[BudgetShape]:
    """Add hours to this month's budget (admins)."""
    return Call("POST", "budget-hours/", body=body)


class BudgetsListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    search: str
    tenant: str
    user: str


def budgets_list(**query: Unpack[BudgetsListQuery]) -> Call[Page[BudgetShape]]:
    """Return budgets of GPU-hours this month: your tenants' and your own. Owners also see their people's."""
    return Call("GET", "budgets/", query=query)


def budgets_create(body: BudgetSettings) -> Call[BudgetSettings]:
    """Create one (admins)."""
    return Call("POST", "budgets/", body=body)


def budgets_retrieve(slug: str) -> Call[BudgetSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"budgets/{place(slug)}/")


def budgets_partial_update(slug: str, body: PatchedBudgetChanges | None = None) -> Call[BudgetSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"budgets/{place(slug)}/", body=body)


def budgets_destroy(slug: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"budgets/{place(slug)}/")


def budgets_of_person_retrieve(slug: str, username: str) -> Call[BudgetSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"budgets/{place(slug)}/{place(username)}/")


def budgets_of_person_partial_update(
    slug: str, username: str, body: PatchedBudgetChanges | None = None
) -> Call[BudgetSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"budgets/{place(slug)}/{place(username)}/", body=body)


def budgets_of_person_destroy(slug: str, username: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"budgets/{place(slug)}/{place(username)}/")


class ClassLaunchesListQuery(TypedDict, total=False):
    booking: str
    cursor: str
    limit: int
    name: str
    search: str
    tenant: str


def class_launches_list(**query: Unpack[ClassLaunchesListQuery]) -> Call[Page[ClassShape]]:
    """Return class launches of the tenants that you own."""
    return Call("GET", "class-launches/", query=query)


def class_launches_create(body: ClassBody) -> Call[ClassWithPeopleShape]:
    """Launch a workspace for each person of a list (owners)."""
    return Call("POST", "class-launches/", body=body)


def class_launches_retrieve(id: str) -> Call[ClassWithPeopleShape]:
    """Return one class launch, with a line per person."""
    return Call("GET", f"class-launches/{place(id)}/")


def class_launches_destroy(id: str) -> Call[None]:
    """Delete a class launch; its workspaces stay."""
    return Call("DELETE", f"class-launches/{place(id)}/")


def class_launches_collect_create(id: str, body: CollectBody) -> Call[bytes]:
    """Return a folder of each person's home, as one tar archive."""
    return Call("POST", f"class-launches/{place(id)}/collect/", body=body)


def class_launches_extend_create(id: str, body: ExtendBody | None = None) -> Call[ClassWithPeopleShape]:
    """Change the end of all workspaces of a class that run."""
    return Call("POST", f"class-launches/{place(id)}/extend/", body=body)


def class_launches_stop_create(id: str) -> Call[ClassWithPeopleShape]:
    """Stop all workspaces of a class; files stay."""
    return Call("POST", f"class-launches/{place(id)}/stop/")


class ClustersListQuery(TypedDict, total=False):
    cursor: str
    exposure: Literal["load-balancer", "node-port", "portal"]
    limit: int
    search: str
    slug: str


def clusters_list(**query: Unpack[ClustersListQuery]) -> Call[Page[ClusterShape]]:
    """Return the clusters (admins)."""
    return Call("GET", "clusters/", query=query)


def clusters_create(body: ClusterSettings) -> Call[ClusterSettings]:
    """Create one (admins)."""
    return Call("POST", "clusters/", body=body)


def clusters_retrieve(cluster: str) -> Call[ClusterSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"clusters/{place(cluster)}/")


def clusters_partial_update(cluster: str, body: PatchedClusterChanges | None = None) -> Call[ClusterSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"clusters/{place(cluster)}/", body=body)


def clusters_destroy(cluster: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"clusters/{place(cluster)}/")


def clusters_doctor_retrieve(cluster: str) -> Call[DoctorShape]:
    """Return what doctor finds in the cluster now (admins)."""
    return Call("GET", f"clusters/{place(cluster)}/doctor/")


def clusters_prove_create(cluster: str) -> Call[None]:
    """Prove that the cluster keeps tenants apart; doctor shows the result (admins)."""
    return Call("POST", f"clusters/{place(cluster)}/prove/")


def configuration_retrieve() -> Call[str]:
    """Return what admins configure, as YAML, without secrets (admins)."""
    return Call("GET", "configuration/")


class ConfigurationUpdateQuery(TypedDict, total=False):
    dry_run: bool


def configuration_update(
    content: Content, **query: Unpack[ConfigurationUpdateQuery]
) -> Call[DifferenceShape]:
    """Bring the configuration to what a file says, all of it or nothing (admins)."""
    return Call("PUT", "configuration/", content=content, content_type="application/yaml", query=query)


class ConnectionsListQuery(TypedDict, total=False):
    bucket: str
    cursor: str
    limit: int
    name: str
    search: str


def connections_list(**query: Unpack[ConnectionsListQuery]) -> Call[Page[ConnectionShape]]:
    """Return your connections to buckets."""
    return Call("GET", "connections/", query=query)


def connections_create(body: ConnectionBody) -> Call[ConnectionShape]:
    """Name a bucket and its keys."""
    return Call("POST", "connections/", body=body)


def connections_retrieve(id: str) -> Call[ConnectionShape]:
    """Return one connection."""
    return Call("GET", f"connections/{place(id)}/")


def connections_partial_update(
    id: str, body: PatchedConnectionChangeBody | None = None
) -> Call[ConnectionShape]:
    """Change it; workspaces have it from their next start on."""
    return Call("PATCH", f"connections/{place(id)}/", body=body)


def connections_destroy(id: str) -> Call[None]:
    """Forget it; workspaces are without it from their next start on."""
    return Call("DELETE", f"connections/{place(id)}/")


def device_code_create(body: NewDeviceCode) -> Call[DeviceCodeShape]:
    """Begin the sign-in of a terminal: a person confirms its code in their browser."""
    return Call("POST", "device/code/", body=body)


def device_token_create(body: DeviceTokenBody) -> Call[DeviceTokenShape]:
    """Return the token of a terminal, once a person has confirmed its code."""
    return Call("POST", "device/token/", body=body)


class DriftListQuery(TypedDict, total=False):
    cluster: str
    cursor: str
    limit: int
    search: str
    state: Literal["accepted", "open", "over"]
    what: Literal["changed", "missing", "unwanted"]


def drift_list(**query: Unpack[DriftListQuery]) -> Call[Page[FindingShape]]:
    """Return differences between the clusters and Berth's rows (admins)."""
    return Call("GET", "drift/", query=query)


def drift_look_create() -> Call[None]:
    """Check all clusters now; a new difference is shown a minute later (admins)."""
    return Call("POST", "drift/look/")


def drift_adopt_create(id: str) -> Call[FindingShape]:
    """Accept a change as it is (admins)."""
    return Call("POST", f"drift/{place(id)}/adopt/")


def drift_delete_create(id: str, body: DeleteBody | None = None) -> Call[FindingShape]:
    """Delete an object that no row wants (admins)."""
    return Call("POST", f"drift/{place(id)}/delete/", body=body)


def drift_recreate_create(id: str) -> Call[FindingShape]:
    """Make the object again as it should be (admins)."""
    return Call("POST", f"drift/{place(id)}/recreate/")


def estimate_create(body: EstimateBody) -> Call[EstimateShape]:
    """Check whether a launch would start now; saves nothing."""
    return Call("POST", "estimate/", body=body)


class FlavorsListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    pool: str
    search: str
    slug: str


def flavors_list(**query: Unpack[FlavorsListQuery]) -> Call[Page[Flavor]]:
    """Return ready-made sizes."""
    return Call("GET", "flavors/", query=query)


def flavors_create(body: FlavorSettings) -> Call[FlavorSettings]:
    """Create one (admins)."""
    return Call("POST", "flavors/", body=body)


def flavors_retrieve(flavor: str) -> Call[FlavorSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"flavors/{place(flavor)}/")


def flavors_partial_update(flavor: str, body: PatchedFlavorChanges | None = None) -> Call[FlavorSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"flavors/{place(flavor)}/", body=body)


def flavors_destroy(flavor: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"flavors/{place(flavor)}/")


class IdleReportRetrieveQuery(TypedDict, total=False):
    days: int
    minutes: int


def idle_report_retrieve(**query: Unpack[IdleReportRetrieveQuery]) -> Call[IdleReportShape]:
    """Return what idle reclaim would have stopped, and what that frees."""
    return Call("GET", "idle/report/", query=query)


class ImagesListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    name: str
    search: str
    slug: str


def images_list(**query: Unpack[ImagesListQuery]) -> Call[Page[ImageShape]]:
    """Return images for workspaces."""
    return Call("GET", "images/", query=query)


def images_create(body: ImageSettings) -> Call[ImageSettings]:
    """Create one (admins)."""
    return Call("POST", "images/", body=body)


def images_retrieve(image: str) -> Call[ImageSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"images/{place(image)}/")


def images_partial_update(image: str, body: PatchedImageChanges | None = None) -> Call[ImageSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"images/{place(image)}/", body=body)


def images_destroy(image: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"images/{place(image)}/")


class JobsListQuery(TypedDict, total=False):
    cursor: str
    image: str
    limit: int
    name: str
    ordering: Literal["-created_at", "created_at", "-changed_at", "name"]
    owner: str
    phase: list[Literal["cancelled", "cancelling", "failed", "running", "starting", "succeeded", "waiting"]]
    pool: str
    search: str
    tenant: str


def jobs_list(**query: Unpack[JobsListQuery]) -> Call[Page[JobShape]]:
    """Return jobs that you can see."""
    return Call("GET", "jobs/", query=query)


def jobs_create(body: JobBody) -> Call[JobShape]:
    """Submit a job."""
    return Call("POST", "jobs/", body=body)


def jobs_retrieve(id: str) -> Call[JobShape]:
    """Return one job."""
    return Call("GET", f"jobs/{place(id)}/")


def jobs_destroy(id: str) -> Call[JobShape]:
    """Cancel a job and delete it."""
    return Call("DELETE", f"jobs/{place(id)}/")


def jobs_cancel_create(id: str) -> Call[JobShape]:
    """Cancel a job; what it wrote stays."""
    return Call("POST", f"jobs/{place(id)}/cancel/")


def jobs_duplicate_create(id: str, body: DuplicateBody | None = None) -> Call[JobShape]:
    """Submit another with the same settings."""
    return Call("POST", f"jobs/{place(id)}/duplicate/", body=body)


class JobsEventsListQuery(TypedDict, total=False):
    after: int
    code: str
    cursor: str
    level: Literal["error", "info", "warning"]
    limit: int
    run: str


def jobs_events_list(id: str, **query: Unpack[JobsEventsListQuery]) -> Call[Page[JobEventShape]]:
    """Return what happened to a job."""
    return Call("GET", f"jobs/{place(id)}/events/", query=query)


JobsLogsRetrieveQuery = TypedDict(
    "JobsLogsRetrieveQuery",
    {
        "after": str,
        "attempt": int,
        "download": bool,
        "from": str,
        "index": int,
        "limit": int,
        "run": str,
        "search": str,
        "tail": int,
        "to": str,
    },
    total=False,
)


def jobs_logs_retrieve(id: str, **query: Unpack[JobsLogsRetrieveQuery]) -> Call[Page[LineShape]]:
    """Return lines that a job wrote, the oldest first."""
    return Call("GET", f"jobs/{place(id)}/logs/", query=query)


def jobs_manifest_retrieve(id: str) -> Call[dict[str, Any]]:
    """Return what Berth asks of Kubernetes for a job."""
    return Call("GET", f"jobs/{place(id)}/manifest/")


class JobsMetricsRetrieveQuery(TypedDict, total=False):
    index: int


def jobs_metrics_retrieve(id: str, **query: Unpack[JobsMetricsRetrieveQuery]) -> Call[ReportedShape]:
    """Return what a part of a job reported: progress, values, and series of them."""
    return Call("GET", f"jobs/{place(id)}/metrics/", query=query)


def jobs_metrics_create(id: str, body: MetricsBody) -> Call[ReportedShape]:
    """Report progress and values of a part that runs."""
    return Call("POST", f"jobs/{place(id)}/metrics/", body=body)


class JobsPartsRetrieveQuery(TypedDict, total=False):
    format: Literal["csv", "json"]
    sort: str


def jobs_parts_retrieve(id: str, **query: Unpack[JobsPartsRetrieveQuery]) -> Call[Page[PartShape]]:
    """Return parts of a job, with their parameters and newest values."""
    return Call("GET", f"jobs/{place(id)}/parts/", query=query)


def jobs_pipeline_retrieve(id: str) -> Call[PipelineShape]:
    """Return jobs that are connected with a job, and versions of datasets between them."""
    return Call("GET", f"jobs/{place(id)}/pipeline/")


def jobs_retry_failed_create(id: str) -> Call[JobShape]:
    """Let the parts run again that did not succeed."""
    return Call("POST", f"jobs/{place(id)}/retry-failed/")


def jobs_retry_create(id: str) -> Call[JobShape]:
    """Let all parts of a job that is over run again."""
    return Call("POST", f"jobs/{place(id)}/retry/")


def jobs_stop_rest_create(id: str, body: KeepBody | None = None) -> Call[JobShape]:
    """End the parts of a job that are not over, and keep some."""
    return Call("POST", f"jobs/{place(id)}/stop-rest/", body=body)


class LimitsListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    search: str


def limits_list(**query: Unpack[LimitsListQuery]) -> Call[Page[TenantLimitSettings]]:
    """Return settings of all (admins)."""
    return Call("GET", "limits/", query=query)


def limits_create(body: TenantLimitSettings) -> Call[TenantLimitSettings]:
    """Create one (admins)."""
    return Call("POST", "limits/", body=body)


def limits_retrieve(slug: str) -> Call[TenantLimitSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"limits/{place(slug)}/")


def limits_partial_update(
    slug: str, body: PatchedTenantLimitChanges | None = None
) -> Call[TenantLimitSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"limits/{place(slug)}/", body=body)


def limits_destroy(slug: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"limits/{place(slug)}/")


class LogLimitsListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    search: str


def log_limits_list(**query: Unpack[LogLimitsListQuery]) -> Call[Page[LogLimitSettings]]:
    """Return settings of all (admins)."""
    return Call("GET", "log-limits/", query=query)


def log_limits_create(body: LogLimitSettings) -> Call[LogLimitSettings]:
    """Create one (admins)."""
    return Call("POST", "log-limits/", body=body)


def log_limits_retrieve(slug: str) -> Call[LogLimitSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"log-limits/{place(slug)}/")


def log_limits_partial_update(
    slug: str, body: PatchedLogLimitChanges | None = None
) -> Call[LogLimitSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"log-limits/{place(slug)}/", body=body)


def log_limits_destroy(slug: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"log-limits/{place(slug)}/")


LogsRetrieveQuery = TypedDict(
    "LogsRetrieveQuery",
    {"after": str, "from": str, "limit": int, "search": str, "tenant": str, "to": str},
    total=False,
)


def logs_retrieve(**query: Unpack[LogsRetrieveQuery]) -> Call[Page[FoundLineShape]]:
    """Search the logs of a tenant, the newest lines first."""
    return Call("GET", "logs/", query=query)


def me_retrieve() -> Call[MeShape]:
    """Return your account and your tenants."""
    return Call("GET", "me/")


def me_partial_update(body: PatchedMyPreferences | None = None) -> Call[MeShape]:
    """Choose your language, time zone and theme."""
    return Call("PATCH", "me/", body=body)


def me_sessions_destroy() -> Call[None]:
    """Sign out of every browser; tokens and SSH keys still work."""
    return Call("DELETE", "me/sessions/")


class NodesListQuery(TypedDict, total=False):
    cluster: str
    cursor: str
    limit: int
    name: str
    ready: bool
    search: str


def nodes_list(**query: Unpack[NodesListQuery]) -> Call[Page[NodeShape]]:
    """Return their nodes (admins)."""
    return Call("GET", "nodes/", query=query)


class NodesCordonCreateQuery(TypedDict, total=False):
    cluster: str


def nodes_cordon_create(
    name: str, body: CloseBody | None = None, **query: Unpack[NodesCordonCreateQuery]
) -> Call[NodeChanged]:
    """Close a node for new work (admins)."""
    return Call("POST", f"nodes/{place(name)}/cordon/", body=body, query=query)


class NodesDrainCreateQuery(TypedDict, total=False):
    cluster: str


def nodes_drain_create(
    name: str, body: DrainBody | None = None, **query: Unpack[NodesDrainCreateQuery]
) -> Call[NodeChanged]:
    """Close a node, notify everybody on it, and stop their runs later (admins)."""
    return Call("POST", f"nodes/{place(name)}/drain/", body=body, query=query)


class NodesUncordonCreateQuery(TypedDict, total=False):
    cluster: str


def nodes_uncordon_create(name: str, **query: Unpack[NodesUncordonCreateQuery]) -> Call[NodeChanged]:
    """Open a node again, and cancel its drain (admins)."""
    return Call("POST", f"nodes/{place(name)}/uncordon/", query=query)


class NoticesListQuery(TypedDict, total=False):
    cursor: str
    kind: Literal[
        "booking",
        "budget",
        "failed",
        "health",
        "job",
        "quota",
        "ready",
        "service",
        "share",
        "stopped",
        "stops_soon",
        "volume",
    ]
    limit: int
    search: str
    unread: bool


def notices_list(**query: Unpack[NoticesListQuery]) -> Call[Page[NoticeShape]]:
    """Return your notices, the newest first."""
    return Call("GET", "notices/", query=query)


def notices_preferences_retrieve() -> Call[NoticePreferencesShape]:
    """Return how you are notified, by kind."""
    return Call("GET", "notices/preferences/")


def notices_preferences_partial_update(
    body: PatchedNoticePreferencesShape | None = None,
) -> Call[NoticePreferencesShape]:
    """Choose how you are notified; kinds that are not named stay."""
    return Call("PATCH", "notices/preferences/", body=body)


def notices_read_all() -> Call[None]:
    """Mark all your notices as read."""
    return Call("POST", "notices/read/")


def notices_read_create(id: str) -> Call[None]:
    """Mark one of your notices as read."""
    return Call("POST", f"notices/{place(id)}/read/")


class PeopleListQuery(TypedDict, total=False):
    cursor: str
    is_active: bool
    is_admin: bool
    limit: int
    search: str
    tenant: str


def people_list(**query: Unpack[PeopleListQuery]) -> Call[Page[PersonShape]]:
    """Return people (admins)."""
    return Call("GET", "people/", query=query)


def people_create(body: NewPerson) -> Call[NewPersonShape]:
    """Create a person; only this response contains the first password (admins)."""
    return Call("POST", "people/", body=body)


def people_retrieve(username: str) -> Call[PersonShape]:
    """Return a person (admins)."""
    return Call("GET", f"people/{place(username)}/")


def people_partial_update(username: str, body: PatchedPersonChange | None = None) -> Call[PersonShape]:
    """Change, activate or deactivate a person, give or remove admin rights (admins)."""
    return Call("PATCH", f"people/{place(username)}/", body=body)


def people_destroy(username: str) -> Call[None]:
    """Delete a person who never launched anything (admins)."""
    return Call("DELETE", f"people/{place(username)}/")


def people_password_create(username: str) -> Call[FirstPasswordShape]:
    """Set a new first password; only this response contains it (admins)."""
    return Call("POST", f"people/{place(username)}/password/")


def people_reset_second_factor_create(username: str) -> Call[None]:
    """Remove the second factor of a person who lost it (admins)."""
    return Call("POST", f"people/{place(username)}/reset-second-factor/")


class PoolsListQuery(TypedDict, total=False):
    cluster: str
    cursor: str
    ecc: Any
    limit: int
    min_compute_capability: Any
    min_memory_mib: Any
    product: Any
    search: str
    sharing: Literal["exclusive", "gpu-manager", "hami", "mig", "mps", "time-slicing"]
    slug: str


def pools_list(**query: Unpack[PoolsListQuery]) -> Call[Page[Pool]]:
    """Return pools, with free GPUs, your own GPUs, and the number of waiting requests."""
    return Call("GET", "pools/", query=query)


def pools_create(body: PoolSettings) -> Call[PoolSettings]:
    """Create one (admins)."""
    return Call("POST", "pools/", body=body)


def pools_retrieve(pool: str) -> Call[PoolSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"pools/{place(pool)}/")


def pools_partial_update(pool: str, body: PatchedPoolChanges | None = None) -> Call[PoolSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"pools/{place(pool)}/", body=body)


def pools_destroy(pool: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"pools/{place(pool)}/")


class PostMortemsListQuery(TypedDict, total=False):
    cluster: str
    cursor: str
    happened: list[Literal["evicted", "failed", "interrupted", "lost", "rejected", "restarted"]]
    job: str
    limit: int
    node: str
    owner: str
    search: str
    tenant: str
    verdict: str
    workspace: str


def post_mortems_list(**query: Unpack[PostMortemsListQuery]) -> Call[Page[PostMortemShape]]:
    """Return post-mortems of runs that failed, were evicted or interrupted."""
    return Call("GET", "post-mortems/", query=query)


def post_mortems_retrieve(id: str) -> Call[WholePostMortemShape]:
    """Return one post-mortem."""
    return Call("GET", f"post-mortems/{place(id)}/")


def post_mortems_notes_create(id: str, body: PostMortemNoteBody) -> Call[PostMortemNoteShape]:
    """Add a note to a post-mortem."""
    return Call("POST", f"post-mortems/{place(id)}/notes/", body=body)


class QuotasListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    pool: str
    search: str
    tenant: str


def quotas_list(**query: Unpack[QuotasListQuery]) -> Call[PaginatedQuotaList]:
    """Return GPU quotas of your tenants by pool, with current use."""
    return Call("GET", "quotas/", query=query)


def quotas_create(body: QuotaSettings) -> Call[QuotaSettings]:
    """Create one (admins)."""
    return Call("POST", "quotas/", body=body)


def quotas_retrieve(slug: str, pool: str) -> Call[QuotaSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"quotas/{place(slug)}/{place(pool)}/")


def quotas_partial_update(
    slug: str, pool: str, body: PatchedQuotaChanges | None = None
) -> Call[QuotaSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"quotas/{place(slug)}/{place(pool)}/", body=body)


def quotas_destroy(slug: str, pool: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"quotas/{place(slug)}/{place(pool)}/")


class ServiceAccountsListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    search: str


def service_accounts_list(**query: Unpack[ServiceAccountsListQuery]) -> Call[Page[ServiceAccountShape]]:
    """Return service accounts of tenants that you own."""
    return Call("GET", "service-accounts/", query=query)


def service_accounts_create(body: NewServiceAccount) -> Call[ServiceAccountShape]:
    """Create a service account (owners)."""
    return Call("POST", "service-accounts/", body=body)


def service_accounts_retrieve(id: str) -> Call[ServiceAccountShape]:
    """Return a service account."""
    return Call("GET", f"service-accounts/{place(id)}/")


def service_accounts_destroy(id: str) -> Call[None]:
    """Delete a service account: its tokens end at once (owners)."""
    return Call("DELETE", f"service-accounts/{place(id)}/")


def service_accounts_adopt_create(id: str) -> Call[ServiceAccountShape]:
    """Answer for a service account, and revoke its tokens (owners)."""
    return Call("POST", f"service-accounts/{place(id)}/adopt/")


class ServiceAccountsTokensListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    name: str
    prefix: str
    search: str


def service_accounts_tokens_list(
    id: str, **query: Unpack[ServiceAccountsTokensListQuery]
) -> Call[Page[TokenShape]]:
    """Return tokens of a service account (owners)."""
    return Call("GET", f"service-accounts/{place(id)}/tokens/", query=query)


def service_accounts_tokens_create(id: str, body: NewServiceToken) -> Call[TokenWithSecretShape]:
    """Create a token of a service account for which you answer; only this response contains its secret."""
    return Call("POST", f"service-accounts/{place(id)}/tokens/", body=body)


def service_accounts_tokens_destroy(id: str, token_id: str) -> Call[None]:
    """Revoke a token of a service account (owners)."""
    return Call("DELETE", f"service-accounts/{place(id)}/tokens/{place(token_id)}/")


class SshKeysListQuery(TypedDict, total=False):
    cursor: str
    fingerprint: str
    limit: int
    name: str
    search: str


def ssh_keys_list(**query: Unpack[SshKeysListQuery]) -> Call[Page[SSHKeyShape]]:
    """Return your SSH keys."""
    return Call("GET", "ssh-keys/", query=query)


def ssh_keys_create(body: NewSSHKey) -> Call[SSHKeyShape]:
    """Add an SSH key."""
    return Call("POST", "ssh-keys/", body=body)


def ssh_keys_destroy(id: str) -> Call[None]:
    """Remove an SSH key."""
    return Call("DELETE", f"ssh-keys/{place(id)}/")


class TemplatesListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    name: str
    search: str
    tenant: str


def templates_list(**query: Unpack[TemplatesListQuery]) -> Call[Page[TemplateShape]]:
    """Return templates of your tenants."""
    return Call("GET", "templates/", query=query)


def templates_create(body: TemplateBody) -> Call[TemplateShape]:
    """Save a launch as a template."""
    return Call("POST", "templates/", body=body)


def templates_retrieve(id: str) -> Call[TemplateShape]:
    """Return one template."""
    return Call("GET", f"templates/{place(id)}/")


def templates_partial_update(id: str, body: PatchedTemplateChange | None = None) -> Call[TemplateShape]:
    """Change a template."""
    return Call("PATCH", f"templates/{place(id)}/", body=body)


def templates_destroy(id: str) -> Call[None]:
    """Delete a template."""
    return Call("DELETE", f"templates/{place(id)}/")


class TenantsListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    name: str
    search: str
    slug: str


def tenants_list(**query: Unpack[TenantsListQuery]) -> Call[Page[TenantShape]]:
    """Return tenants that you can see."""
    return Call("GET", "tenants/", query=query)


def tenants_create(body: NewTenant) -> Call[TenantShape]:
    """Create a tenant (admins)."""
    return Call("POST", "tenants/", body=body)


def tenants_retrieve(slug: str) -> Call[TenantSettings]:
    """Return settings of one (admins)."""
    return Call("GET", f"tenants/{place(slug)}/")


def tenants_partial_update(slug: str, body: PatchedTenantChanges | None = None) -> Call[TenantSettings]:
    """Change settings (admins)."""
    return Call("PATCH", f"tenants/{place(slug)}/", body=body)


def tenants_destroy(slug: str) -> Call[None]:
    """Delete, if nothing uses it (admins)."""
    return Call("DELETE", f"tenants/{place(slug)}/")


class TenantsMembersListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    role: Literal["member", "owner", "viewer"]
    search: str


def tenants_members_list(slug: str, **query: Unpack[TenantsMembersListQuery]) -> Call[Page[MemberShape]]:
    """Return members of a tenant."""
    return Call("GET", f"tenants/{place(slug)}/members/", query=query)


def tenants_members_create(slug: str, body: NewMember) -> Call[MemberShape]:
    """Add a person, or change their role (owners)."""
    return Call("POST", f"tenants/{place(slug)}/members/", body=body)


def tenants_members_partial_update(
    slug: str, username: str, body: PatchedNewRole | None = None
) -> Call[MemberShape]:
    """Change a person's role (owners)."""
    return Call("PATCH", f"tenants/{place(slug)}/members/{place(username)}/", body=body)


def tenants_members_destroy(slug: str, username: str) -> Call[None]:
    """Remove a person from a tenant (owners)."""
    return Call("DELETE", f"tenants/{place(slug)}/members/{place(username)}/")


class TokensListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    name: str
    prefix: str
    search: str


def tokens_list(**query: Unpack[TokensListQuery]) -> Call[Page[TokenShape]]:
    """Return your API tokens."""
    return Call("GET", "tokens/", query=query)


def tokens_create(body: NewToken) -> Call[TokenWithSecretShape]:
    """Create an API token; only this response contains its secret."""
    return Call("POST", "tokens/", body=body)


def tokens_destroy(id: str) -> Call[None]:
    """Revoke an API token."""
    return Call("DELETE", f"tokens/{place(id)}/")


class UnexplainedMessagesListQuery(TypedDict, total=False):
    cursor: str
    limit: int
    search: str
    source: str


def unexplained_messages_list(**query: Unpack[UnexplainedMessagesListQuery]) -> Call[Page[UnexplainedShape]]:
    """Return messages of the clusters that no rule explains (admins)."""
    return Call("GET", "unexplained-messages/", query=query)


def unexplained_messages_create(digest: str) -> Call[UnexplainedShape]:
    """Dismiss a message that needs no rule (admins)."""
    return Call("POST", f"unexplained-messages/{place(digest)}/")


def unexplained_messages_destroy(digest: str) -> Call[None]:
    """Delete a message that a rule explains now (admins)."""
    return Call("DELETE", f"unexplained-messages/{place(digest)}/")


UsageRetrieveQuery = TypedDict(
    "UsageRetrieveQuery",
    {
        "format": "Literal['csv', 'json']",
        "from": str,
        "group_by": "Literal['day', 'pool', 'tenant', 'user']",
        "pool": str,
        "tenant": str,
        "to": str,
        "user": str,
    },
    total=False,
)


def usage_retrieve(**query: Unpack[UsageRetrieveQuery]) -> Call[UsageShape]:
    """Return GPU-hours and storage used."""
    return Call("GET", "usage/", query=query)


class VolumesListQuery(TypedDict, total=False):
    cluster: str
    cursor: str
    kind: list[Literal["dataset", "disk", "home", "scratch"]]
    limit: int
    name: str
    owner: str
    phase: list[Literal["deleted", "deleting", "failed", "growing", "in_bin", "pending", "ready"]]
    search: str
    shared: list[Literal["no", "read", "write"]]
    tenant: str


def volumes_list(**query: Unpack[VolumesListQuery]) -> Call[Page[VolumeShape]]:
    """Return volumes that you can see, those in the bin too."""
    return Call("GET", "volumes/", query=query)


def volumes_create(body: VolumeBody) -> Call[VolumeShape]:
    """Create a volume."""
    return Call("POST", "volumes/", body=body)


def volumes_adopt_create(body: AdoptBody) -> Call[VolumeShape]:
    """Adopt storage that is there already; for admins."""
    return Call("POST", "volumes/adopt/", body=body)


def volumes_retrieve(id: str) -> Call[VolumeShape]:
    """Return one volume."""
    return Call("GET", f"volumes/{place(id)}/")


def volumes_partial_update(id: str, body: PatchedVolumeChangeBody | None = None) -> Call[VolumeShape]:
    """Grow, rename or share it."""
    return Call("PATCH", f"volumes/{place(id)}/", body=body)


class VolumesDestroyQuery(TypedDict, total=False):
    now: bool


def volumes_destroy(id: str, **query: Unpack[VolumesDestroyQuery]) -> Call[VolumeShape]:
    """Put it into the bin for 7 days."""
    return Call("DELETE", f"volumes/{place(id)}/", query=query)


def volumes_clone_create(id: str, body: VolumeCloneBody) -> Call[VolumeShape]:
    """Create a volume that begins with its files."""
    return Call("POST", f"volumes/{place(id)}/clone/", body=body)


def volumes_confirm_create(id: str) -> Call[VolumeShape]:
    """Confirm an adopted volume, so that it can be written to; for its owner."""
    return Call("POST", f"volumes/{place(id)}/confirm/")


def volumes_files_session_retrieve(id: str) -> Call[SessionShape]:
    """Return the session that serves its files."""
    return Call("GET", f"volumes/{place(id)}/files-session/")


def volumes_files_session_create(id: str) -> Call[SessionShape]:
    """Open its files: start the session that serves them."""
    return Call("POST", f"volumes/{place(id)}/files-session/")


def volumes_files_session_destroy(id: str) -> Call[SessionShape]:
    """Close its files: end the session."""
    return Call("DELETE", f"volumes/{place(id)}/files-session/")


class VolumesFilesRetrieveQuery(TypedDict, total=False):
    after: str
    path: str


def volumes_files_retrieve(id: str, **query: Unpack[VolumesFilesRetrieveQuery]) -> Call[FolderShape]:
    """Return files in a folder, by name."""
    return Call("GET", f"volumes/{place(id)}/files/", query=query)


def volumes_files_create(id: str, body: NewFolder) -> Call[NewFolder]:
    """Create a folder."""
    return Call("POST", f"volumes/{place(id)}/files/", body=body)


class VolumesFilesContentRetrieveQuery(TypedDict, total=False):
    path: str


def volumes_files_content_retrieve(id: str, **query: Unpack[VolumesFilesContentRetrieveQuery]) -> Call[bytes]:
    """Download a file."""
    return Call("GET", f"volumes/{place(id)}/files/content/", query=query)


class VolumesFilesContentUpdateQuery(TypedDict, total=False):
    path: str
    upload: str


def volumes_files_content_update(
    id: str, content: Content, **query: Unpack[VolumesFilesContentUpdateQuery]
) -> Call[UploadShape]:
    """Upload a file."""
    return Call(
        "PUT",
        f"volumes/{place(id)}/files/content/",
        content=content,
        content_type="application/octet-stream",
        query=query,
    )


class VolumesFilesContentPartialUpdateQuery(TypedDict, total=False):
    path: str


def volumes_files_content_partial_update(
    id: str, body: PatchedNewPath | None = None, **query: Unpack[VolumesFilesContentPartialUpdateQuery]
) -> Call[NewPath]:
    """Rename or move a file or folder."""
    return Call("PATCH", f"volumes/{place(id)}/files/content/", body=body, query=query)


class VolumesFilesContentDestroyQuery(TypedDict, total=False):
    path: str
    recursive: bool


def volumes_files_content_destroy(id: str, **query: Unpack[VolumesFilesContentDestroyQuery]) -> Call[None]:
    """Delete a file or folder."""
    return Call("DELETE", f"volumes/{place(id)}/files/content/", query=query)


def volumes_inspect_create(id: str) -> Call[VolumeShape]:
    """Inspect an adopted volume again."""
    return Call("POST", f"volumes/{place(id)}/inspect/")


def volumes_publish_create(id: str, body: NoteBody | None = None) -> Call[VolumeShape]:
    """Freeze a dataset as its next version."""
    return Call("POST", f"volumes/{place(id)}/publish/", body=body)


def volumes_restore_create(id: str) -> Call[VolumeShape]:
    """Take it out of the bin."""
    return Call("POST", f"volumes/{place(id)}/restore/")


def volumes_snapshot_create(id: str, body: NoteBody | None = None) -> Call[SnapshotShape]:
    """Keep it as it is now."""
    return Call("POST", f"volumes/{place(id)}/snapshot/", body=body)


def volumes_snapshots_list(id: str) -> Call[list[SnapshotShape]]:
    """Return snapshots and versions of it."""
    return Call("GET", f"volumes/{place(id)}/snapshots/")


def volumes_snapshots_destroy(id: str, snapshot: str) -> Call[SnapshotShape]:
    """Delete a snapshot or a version with its data."""
    return Call("DELETE", f"volumes/{place(id)}/snapshots/{place(snapshot)}/")


def volumes_transfer_create(id: str, body: TransferBody) -> Call[VolumeShape]:
    """Hand it to another member of its tenant."""
    return Call("POST", f"volumes/{place(id)}/transfer/", body=body)


class WorkspacesListQuery(TypedDict, total=False):
    cursor: str
    desired: list[Literal["deleted", "running", "stopped"]]
    flavor: str
    image: str
    limit: int
    name: str
    node: str
    ordering: Literal["-created_at", "created_at", "-changed_at", "name"]
    owner: str
    phase: list[
        Literal["deleted", "deleting", "failed", "ready", "starting", "stopped", "stopping", "waiting"]
    ]
    pool: str
    search: str
    shared_with_me: bool
    tenant: str


def workspaces_list(**query: Unpack[WorkspacesListQuery]) -> Call[Page[WorkspaceShape]]:
    """Return workspaces that you can see."""
    return Call("GET", "workspaces/", query=query)


def workspaces_create(body: LaunchBody) -> Call[WorkspaceShape]:
    """Launch a workspace."""
    return Call("POST", "workspaces/", body=body)


def workspaces_retrieve(id: str) -> Call[WorkspaceShape]:
    """Return one workspace."""
    return Call("GET", f"workspaces/{place(id)}/")


def workspaces_partial_update(id: str, body: PatchedChangeBody | None = None) -> Call[WorkspaceShape]:
    """Change its name, size, lifetime, volumes, image, environment."""
    return Call("PATCH", f"workspaces/{place(id)}/", body=body)


class WorkspacesDestroyQuery(TypedDict, total=False):
    delete_disk: bool


def workspaces_destroy(id: str, **query: Unpack[WorkspacesDestroyQuery]) -> Call[WorkspaceShape]:
    """Delete a workspace."""
    return Call("DELETE", f"workspaces/{place(id)}/", query=query)


def workspaces_apps_create(id: str, body: AppBody) -> Call[AppShape]:
    """Declare an app of the workspace."""
    return Call("POST", f"workspaces/{place(id)}/apps/", body=body)


def workspaces_apps_partial_update(
    id: str, port: str, body: PatchedAppChangeBody | None = None
) -> Call[AppShape]:
    """Change an app's name, or who may open it."""
    return Call("PATCH", f"workspaces/{place(id)}/apps/{place(port)}/", body=body)


def workspaces_apps_destroy(id: str, port: str) -> Call[None]:
    """Close the way to an app."""
    return Call("DELETE", f"workspaces/{place(id)}/apps/{place(port)}/")


def workspaces_clone_create(id: str, body: CloneBody | None = None) -> Call[WorkspaceShape]:
    """Launch another with the same settings."""
    return Call("POST", f"workspaces/{place(id)}/clone/", body=body)


class WorkspacesEventsListQuery(TypedDict, total=False):
    after: int
    code: str
    cursor: str
    level: Literal["error", "info", "warning"]
    limit: int
    run: str
    step: Literal[
        "admission",
        "container",
        "disk",
        "endpoint",
        "image",
        "mounts",
        "ready",
        "request",
        "scheduled",
        "started",
    ]


def workspaces_events_list(id: str, **query: Unpack[WorkspacesEventsListQuery]) -> Call[Page[EventShape]]:
    """Return the activity of a workspace, oldest first."""
    return Call("GET", f"workspaces/{place(id)}/events/", query=query)


def workspaces_extend_create(id: str, body: ExtendBody | None = None) -> Call[WorkspaceShape]:
    """Change the end of its lifetime."""
    return Call("POST", f"workspaces/{place(id)}/extend/", body=body)


def workspaces_job_create(id: str, body: WorkspaceJobBody | None = None) -> Call[JobShape]:
    """Submit a job with the settings of a workspace."""
    return Call("POST", f"workspaces/{place(id)}/job/", body=body)


def workspaces_jupyter_create(id: str) -> Call[JupyterShape]:
    """Return address and token of Jupyter, for scripts of the owner."""
    return Call("POST", f"workspaces/{place(id)}/jupyter/")


def workspaces_keep_alive_create(id: str) -> Call[WorkspaceShape]:
    """Keep an idle workspace running."""
    return Call("POST", f"workspaces/{place(id)}/keep-alive/")


WorkspacesLogsRetrieveQuery = TypedDict(
    "WorkspacesLogsRetrieveQuery",
    {
        "after": str,
        "container": str,
        "download": bool,
        "follow": bool,
        "from": str,
        "limit": int,
        "lines": bool,
        "run": str,
        "search": str,
        "tail": int,
        "to": str,
    },
    total=False,
)


def workspaces_logs_retrieve(id: str, **query: Unpack[WorkspacesLogsRetrieveQuery]) -> Call[Page[LineShape]]:
    """Return the log of a workspace, also of runs that are over."""
    return Call("GET", f"workspaces/{place(id)}/logs/", query=query)


class WorkspacesMetricsRetrieveQuery(TypedDict, total=False):
    window: str


def workspaces_metrics_retrieve(
    id: str, **query: Unpack[WorkspacesMetricsRetrieveQuery]
) -> Call[MetricsShape]:
    """Return usage of a workspace."""
    return Call("GET", f"workspaces/{place(id)}/metrics/", query=query)


def workspaces_restart_create(id: str) -> Call[WorkspaceShape]:
    """Restart a workspace on the same units."""
    return Call("POST", f"workspaces/{place(id)}/restart/")


def workspaces_schedule_retrieve(id: str) -> Call[ScheduleShape]:
    """Return weekly schedule of the workspace."""
    return Call("GET", f"workspaces/{place(id)}/schedule/")


def workspaces_schedule_update(id: str, body: ScheduleBody) -> Call[ScheduleShape]:
    """Start and stop the workspace at times of the week."""
    return Call("PUT", f"workspaces/{place(id)}/schedule/", body=body)


def workspaces_schedule_destroy(id: str) -> Call[None]:
    """Remove the schedule."""
    return Call("DELETE", f"workspaces/{place(id)}/schedule/")


def workspaces_shares_retrieve(id: str) -> Call[Page[ShareShape]]:
    """Return people with whom the workspace is shared."""
    return Call("GET", f"workspaces/{place(id)}/shares/")


def workspaces_shares_create(id: str, body: ShareBody) -> Call[ShareShape]:
    """Share the workspace with a colleague."""
    return Call("POST", f"workspaces/{place(id)}/shares/", body=body)


def workspaces_shares_destroy(id: str, share: str) -> Call[None]:
    """Revoke a share."""
    return Call("DELETE", f"workspaces/{place(id)}/shares/{place(share)}/")


def workspaces_start_create(id: str) -> Call[WorkspaceShape]:
    """Start a stopped or failed workspace."""
    return Call("POST", f"workspaces/{place(id)}/start/")


def workspaces_stop_create(id: str) -> Call[WorkspaceShape]:
    """Stop a workspace; its files stay."""
    return Call("POST", f"workspaces/{place(id)}/stop/")


def ws_tickets_create() -> Call[TicketShape]:
    """Return a ticket that opens one websocket within 60 s."""
    return Call("POST", "ws-tickets/")
