"""Admin pages for clusters, with a connection test, and for messages that no rule explains yet."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.admin.meters import meter
from accounts.admin.recorded import RecordedPage, SecretField
from accounts.errors import Invalid, Refusal
from accounts.forms import show_refusal
from accounts.models import AuditEntry
from accounts.rest.actors import actor_of
from accounts.trail import audit
from clusters import unknown_causes
from clusters.adding import kubeconfigs
from clusters.doctor import Level, by_check, keeping, proving
from clusters.isolation.actions import FOUND, RequireIsolation, RunWithoutIsolation
from clusters.models import Cluster, UnknownCause
from clusters.site import registries

CONNECTING = {"connection", "kubeconfig_path", "pasted", "context"}
MOST_AT_ONCE = 3  # clusters in one test: the page waits for each
MOST_SAID = 160  # characters of a message in the list


class SignOnsWidget(forms.Textarea):
    """Lines of sign-ons. What is sent back with a fault has no passwords: they are entered again."""

    def format_value(self, value: Any) -> str:
        each = (line.split(None, 2) for line in str(value or "").splitlines())
        return "\n".join(
            " ".join(words[:2] + [registries.KEPT] * (words[2:] == [registries.KEPT])) for words in each
        )


class SignOnsField(SecretField):
    widget = SignOnsWidget(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"})

    def to_python(self, value: Any) -> Any:
        """Return lines with the line ends that they are shown with: a browser's other ones are no change."""
        return str(super().to_python(value) or "").replace("\r\n", "\n")


class ClusterForm(forms.ModelForm[Cluster]):
    pasted = SecretField(
        label=gettext_lazy("new kubeconfig"),
        required=False,
        help_text=gettext_lazy(
            "To keep in Berth, encrypted. Nobody can read it here again. Empty: the present one stays."
        ),
    )

    sign_ons = SignOnsField(
        label=gettext_lazy("sign-ons to registries"),
        required=False,
        help_text=gettext_lazy(
            "One HOST USER PASSWORD per line, as in: registry.example robot s3cret. Berth encrypts them and gives "
            "them to each tenant’s namespace, so that its images can be pulled. “kept” stands for a stored password."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["sign_ons"] = registries.lines(registries.known(self.instance))

    def clean_sign_ons(self) -> str:
        text: str = self.cleaned_data["sign_ons"]
        if "sign_ons" in self.changed_data:
            stored = registries.known(self.instance)
            self.instance.registries = registries.sealed(registries.parsed(text, stored))
        return text

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.instance._state.adding and CONNECTING & set(self.changed_data):
            self.instance.found_networks, self.instance.networks_found_at = (
                {},
                None,
            )  # those of another cluster
        if cleaned.get("connection") != Cluster.Connection.PASTED:
            self.instance.kubeconfig = ""
        elif cleaned.get("pasted"):
            try:
                sealed = kubeconfigs.sealed(cleaned["pasted"], cleaned.get("context", ""))
            except Invalid as refusal:
                show_refusal(self, refusal, lambda name: "pasted" if name == "kubeconfig" else name)
            else:
                self.instance.kubeconfig = sealed
        elif not self.instance.kubeconfig:
            self.add_error("pasted", _("Paste the kubeconfig."))
        return cleaned


@admin.register(Cluster)
class ClusterPage(RecordedPage[Cluster]):
    purpose = gettext_lazy(
        "The Kubernetes clusters that Berth manages: how to connect to each, and its settings."
    )
    list_display = ("name", "is_reached", "connection", "version", "nodes_ready", "pools_here", "exposure")
    list_filter = ("connection", "exposure", ("unreachable_since", admin.EmptyFieldListFilter))
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = (
        "version",
        "unreachable_since",
        "unreachable_reason",
        "found_here",
        "networks_found_at",
        "without_isolation",
        "isolation_proof",
    )
    actions = ("test_connection", RunWithoutIsolation(), RequireIsolation())
    form = ClusterForm
    change_form_template = "admin/clusters/cluster/change_form.html"
    fieldsets = (
        (None, {"fields": ("name", "slug")}),
        (
            gettext_lazy("Connection"),
            {
                "fields": ("connection", "kubeconfig_path", "pasted", "context"),
                "description": gettext_lazy("Of a file on the server Berth only stores the path."),
            },
        ),
        (
            gettext_lazy("Access to workspaces"),
            {"fields": ("exposure", "node_address", "ssh_service_port", "keeps_addresses")},
        ),
        (
            gettext_lazy("Figures of GPUs"),
            {
                "fields": ("prometheus_url", "prometheus_token_path"),
                "description": gettext_lazy(
                    "For clusters whose Prometheus scrapes dcgm-exporter. On nodes with Berth's own agent, "
                    "the agent's reports are used."
                ),
            },
        ),
        (
            gettext_lazy("Storage"),
            {"fields": ("home_class", "home_mib", "disk_class", "dataset_class", "shared_classes")},
        ),
        (
            gettext_lazy("Images"),
            {"fields": ("sign_ons", "image_pull_secrets", "validation_image", "files_image", "files_uid")},
        ),
        (
            gettext_lazy("Environment of workspaces and jobs"),
            {"fields": ("http_proxy", "https_proxy", "no_proxy", "pod_environment", "trusted_certificates")},
        ),
        (
            gettext_lazy("Isolation of tenants"),
            {
                "fields": (
                    "found_here",
                    "networks_found_at",
                    "pod_cidrs",
                    "service_cidrs",
                    "api_cidrs",
                    "denied_cidrs",
                    "allowed_cidrs",
                    "metrics_namespace",
                    "without_isolation",
                ),
                "description": gettext_lazy(
                    "Workspaces must not reach the networks found here, nor those that you add. Nothing can be "
                    "launched while one is unknown, unless you choose “Run without isolation”."
                ),
            },
        ),
        (
            gettext_lazy("Last known state"),
            {"fields": ("version", "unreachable_since", "unreachable_reason", "isolation_proof")},
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        clusters: QuerySet[Cluster] = super().get_queryset(request)
        return clusters.annotate(
            count_nodes=Count("nodes", distinct=True),
            count_ready=Count("nodes", filter=Q(nodes__ready=True), distinct=True),
            count_pools=Count("pools", distinct=True),
        )

    def buttons(self, request: HttpRequest, obj: Cluster) -> list[tuple[str, str]]:
        return [(RequireIsolation() if obj.without_isolation else RunWithoutIsolation()).as_button]

    @admin.display(description=gettext_lazy("found networks"))
    def found_here(self, cluster: Cluster) -> SafeString:
        found = cluster.found_networks
        rows = [(label, ", ".join(found[name])) for name, label in FOUND.items() if found.get(name)]
        return format_html_join(mark_safe("<br>"), "{}: {}", rows) if rows else SafeString(_("none yet"))

    @admin.display(boolean=True, description=gettext_lazy("reachable"), ordering="unreachable_since")
    def is_reached(self, cluster: Cluster) -> bool:
        return cluster.unreachable_since is None

    @admin.display(description=gettext_lazy("nodes ready"))
    def nodes_ready(self, cluster: Any) -> SafeString:
        facts = {"ready": cluster.count_ready, "all": cluster.count_nodes}
        return meter(cluster.count_ready, cluster.count_nodes, _("%(ready)d of %(all)d") % facts)

    @admin.display(description=gettext_lazy("pools"), ordering="count_pools")
    def pools_here(self, cluster: Any) -> int:
        return int(cluster.count_pools)

    @admin.display(description=gettext_lazy("isolation of tenants, as proven last"))
    def isolation_proof(self, cluster: Cluster) -> str:
        return proving.prover().last(cluster)

    def why_kept(self, obj: Any) -> str:
        names = _(", ").join(str(pool) for pool in obj.pools.all())
        return _("It has pools: %(names)s. Delete those first.") % {"names": names} if names else ""

    # --- the test

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(require_POST(self.test_view))
        doctor = self.admin_site.admin_view(require_safe(self.doctor_view))
        prove = self.admin_site.admin_view(require_POST(self.prove_view))
        return [
            path("<path:object_id>/test/", test, name="clusters_cluster_test"),
            path("<path:object_id>/doctor/", doctor, name="clusters_cluster_doctor"),
            path("<path:object_id>/prove/", prove, name="clusters_cluster_prove"),
            *super().get_urls(),
        ]

    def doctor_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what doctor finds now, by theme. The audit trail does not record it."""
        cluster = self.get_object(request, unquote(object_id))
        if cluster is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if not self.has_view_permission(request, cluster):
            raise PermissionDenied
        title = _("Doctor: %(cluster)s") % {"cluster": cluster}
        return self._shown(request, [result_of(cluster)], title)

    def prove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Queue a proof that tenants are kept apart. Its result is a finding of doctor."""
        cluster = self.get_object(request, unquote(object_id))
        if cluster is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if not self.has_change_permission(request, cluster):
            raise PermissionDenied
        try:
            proving.prover().start(actor_of(request), cluster)
        except Refusal as refusal:
            self.message_user(request, f"{refusal.message} {refusal.hint}".strip(), messages.ERROR)
        else:
            self.message_user(request, _("The proof has begun. Its result is shown here in a minute or two."))
        return HttpResponseRedirect(reverse("admin:clusters_cluster_doctor", args=[cluster.pk]))

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        cluster = self.get_object(request, unquote(object_id))
        if cluster is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        return self._tested(request, [cluster])

    @admin.action(description=gettext_lazy("Test the connection"))
    def test_connection(self, request: HttpRequest, clusters: QuerySet[Cluster]) -> HttpResponse | None:
        chosen = list(clusters[: MOST_AT_ONCE + 1])
        if len(chosen) > MOST_AT_ONCE:
            text = _("Choose at most %(count)d at once.") % {"count": MOST_AT_ONCE}
            self.message_user(request, text, messages.WARNING)
            return None
        return self._tested(request, chosen)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Handle “Save and test”: test after the save's transaction, as a test may take a while."""
        response = super().changeform_view(request, *args, **kwargs)
        saved: Cluster | None = getattr(request, "saved_cluster", None)
        if "_test" in request.POST and saved is not None and response.status_code == 302:
            return self._tested(request, [saved])
        return response

    def save_model(self, request: HttpRequest, obj: Cluster, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        request.saved_cluster = obj  # type: ignore[attr-defined]

    def _tested(self, request: HttpRequest, clusters: list[Cluster]) -> HttpResponse:
        """Test without changing anything in the cluster. The audit trail records the test."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        results = [result_of(cluster) for cluster in clusters]
        for result in results:
            cluster = result["cluster"]
            data = {"name": cluster.name, "failures": result["failures"]}
            audit.record(actor_of(request), "cluster.test", target=cluster, data=data)
        return self._shown(request, results, _("Test of the connection"))

    def _shown(self, request: HttpRequest, results: list[dict[str, Any]], title: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "results": results,
            "now": timezone.now(),
        }
        return TemplateResponse(request, "admin/clusters/cluster/test.html", context)

    def response_add(self, request: HttpRequest, obj: Cluster, post_url_continue: str | None = None) -> Any:
        """Redirect to the new cluster's page, which offers the test."""
        super().response_add(request, obj, post_url_continue)
        return HttpResponseRedirect(reverse("admin:clusters_cluster_change", args=[obj.pk]))


def result_of(cluster: Cluster) -> dict[str, Any]:
    """Return an examination of the cluster, and the last recorded test as `before`."""
    findings = keeping.found_now(cluster)
    failures = sum(finding.level == Level.FAIL for finding in findings)
    tests = AuditEntry.objects.filter(action="cluster.test", target_id=str(cluster.pk))
    return {
        "cluster": cluster,
        "checks": by_check(findings),
        "failures": failures,
        "verdict": verdict(failures, sum(finding.level == Level.WARN for finding in findings)),
        "yaml": "\n".join(finding.yaml for finding in findings if finding.yaml),
        "before": tests.order_by("-at").first(),
    }


def verdict(failures: int, warnings: int) -> str:
    if failures:
        text = ngettext("%(count)d thing is missing.", "%(count)d things are missing.", failures)
        return text % {"count": failures}
    if warnings:
        text = ngettext(
            "It works, with %(count)d warning.",
            "It works, with %(count)d warnings.",
            warnings,
        )
        return text % {"count": warnings}
    return _("All good.")


@admin.register(UnknownCause)
class UnknownCausePage(RecordedPage[UnknownCause]):
    purpose = gettext_lazy(
        "Cluster messages that no rule of Berth explains: people see the original text. Dismiss those that "
        "need no rule; delete one once a rule explains it."
    )
    list_display = ("said", "source", "cluster", "count", "first_at", "last_at", "is_dismissed")
    list_filter = (("dismissed_at", admin.EmptyFieldListFilter), "source", "cluster")
    list_select_related = ("cluster",)
    search_fields = ("text",)
    date_hierarchy = "last_at"
    actions = ("dismiss",)
    fields = ("text", "source", "cluster", "count", "first_at", "last_at", "dismissed_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UnknownCause | None = None) -> bool:
        return False

    def buttons(self, request: HttpRequest, obj: UnknownCause) -> list[tuple[str, str]]:
        return [] if obj.dismissed_at else [("dismiss", _("Dismiss"))]

    @admin.display(description=gettext_lazy("text"), ordering="text")
    def said(self, row: UnknownCause) -> str:
        return Truncator(row.text).chars(MOST_SAID)

    @admin.display(boolean=True, description=gettext_lazy("dismissed"), ordering="dismissed_at")
    def is_dismissed(self, row: UnknownCause) -> bool:
        return row.dismissed_at is not None

    @admin.action(description=gettext_lazy("Dismiss"))
    def dismiss(self, request: HttpRequest, rows: QuerySet[UnknownCause]) -> None:
        done = sum(unknown_causes.dismiss(actor_of(request), row) for row in rows)
        text = ngettext("%(count)d message is dismissed.", "%(count)d messages are dismissed.", done)
        self.message_user(request, text % {"count": done})
