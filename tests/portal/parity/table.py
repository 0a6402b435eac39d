"""What each form of a page does, by the API and by `berth`. `docs/development/parity.md` is written from these tables.

`.venv/bin/python -m tests.portal.parity.table` writes the page anew; `test_parity.py` says when that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "development" / "parity.md"
HEAD = """# What pages do, by the API and by `berth`

Written by `python -m tests.portal.parity.table`; a test compares it with the URL map. Every address whose form changes
something is here, with the requests of the [API](../api.md) that do the same, and the command of `berth`. `berth api`
sends any request with a JSON body, or with none; where “–” is beside a request, bytes are sent, as by
`curl --data-binary`. A page without a request says why.

Each request of each row has an example in `tests/portal/parity/examples/`: a test sends it to a Berth over HTTP, by
`berth api` or as bytes, and then looks at what it did. Each other command is run by a test in
`tests/portal/client/test_commands.py`. A row without its example fails, and so does an example without its row.
"""


@dataclass(frozen=True)
class Row:
    """Requests as "METHOD address below /api/v1/", a command (empty: none can), and why there is no request."""

    requests: tuple[str, ...] = ()
    berth: str = "berth api"
    why: str = ""


def by(*requests: str, berth: str = "berth api") -> Row:
    return Row(requests, berth)


def without(why: str) -> Row:
    return Row(why=why)


MEMBERS = (
    "POST tenants/<slug:slug>/members/", "PATCH tenants/<slug:slug>/members/<username:username>/",
    "DELETE tenants/<slug:slug>/members/<username:username>/",
)  # fmt: skip
LOG_LIMITS = ("POST log-limits/", "PATCH log-limits/<slug:slug>/", "DELETE log-limits/<slug:slug>/")
BROWSER = without("It is about the browser's own session.")
SECRETS = without("A token must not change how its person signs in.")
GUIDE = without(
    "A guide: it tries a connection and makes pools of the nodes that are there. `PUT configuration/` writes the same "
    "objects, but as they are in the file, and `POST workspaces/` is the last step."
)
READS = without("It changes nothing: it answers what a form would do.")
FILES = "volumes/<uuid:id>/files"
ACCOUNT = "service-accounts/<uuid:id>/"
NODE_ROWS = "admin-actions/<str:of>/<str:action>/"

# fmt: off
PAGES: dict[str, Row] = {
    "help/causes/": without("It is a page to read, with a search."),
    "device/": without("A person confirms here, in the browser, what `berth login` asked for."),
    "first-run/": GUIDE,
    "first-run/<slug:step>/": GUIDE,
    "tenant/": BROWSER,
    "theme/": by("PATCH me/"),
    "bookings/": by("POST bookings/"),
    "bookings/answer/": READS,
    "bookings/<uuid:id>/": by("PATCH bookings/<uuid:id>/"),
    "bookings/<uuid:id>/cancel/": by("DELETE bookings/<uuid:id>/"),
    "class-launches/": by("POST class-launches/"),
    "class-launches/<uuid:id>/people/": by("POST class-launches/"),
    "class-launches/<uuid:id>/collect/": by("POST class-launches/<uuid:id>/collect/"),
    "class-launches/<uuid:id>/<str:verb>/": by(
        "POST class-launches/<uuid:id>/stop/", "POST class-launches/<uuid:id>/extend/",
        "DELETE class-launches/<uuid:id>/",
    ),
    "healthz": without("It is a probe."),
    "metrics": without("It is for Prometheus."),
    "sign-in/": BROWSER,
    "sign-in/oidc/": BROWSER,
    "sign-in/oidc/callback/": BROWSER,
    "sign-in/password/": SECRETS,
    "sign-in/code/": BROWSER,
    "sign-in/set-up/": SECRETS,
    "sign-out/": BROWSER,
    "profile/": without("It is a page to read; its forms have addresses of their own."),
    "profile/connect/": SECRETS,
    "profile/connect-directory/": SECRETS,
    "profile/password/": SECRETS,
    "profile/second-factor/": SECRETS,
    "profile/second-factor/recovery-codes/": SECRETS,
    "profile/second-factor/remove/": SECRETS,
    "profile/ssh-keys/": by("POST ssh-keys/", berth="berth keys add"),
    "profile/ssh-keys/<uuid:id>/remove/": by("DELETE ssh-keys/<uuid:id>/"),
    "profile/tokens/": by("POST tokens/"),
    "profile/tokens/<uuid:id>/revoke/": by("DELETE tokens/<uuid:id>/"),
    "profile/preferences/": by("PATCH me/"),
    "profile/language/": by("PATCH me/"),
    "profile/sign-out-everywhere/": by("DELETE me/sessions/"),
    "tenants/<slug:slug>/members/": by("POST tenants/<slug:slug>/members/"),
    "tenants/<slug:slug>/members/<username:username>/": by(
        "PATCH tenants/<slug:slug>/members/<username:username>/"
    ),
    "tenants/<slug:slug>/members/<username:username>/remove/": by(
        "DELETE tenants/<slug:slug>/members/<username:username>/"
    ),
    "tenants/<slug:slug>/service-accounts/": by("POST service-accounts/"),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/": by(f"POST {ACCOUNT}tokens/"),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/adopt/": by(f"POST {ACCOUNT}adopt/"),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/delete/": by(f"DELETE {ACCOUNT}"),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/tokens/<uuid:token_id>/revoke/": by(
        f"DELETE {ACCOUNT}tokens/<uuid:token_id>/"
    ),
    "notices/read/": by("POST notices/read/"),
    "notices/settings/": by("PATCH notices/preferences/"),
    "notices/unsubscribe/<str:token>/": by("PATCH notices/preferences/"),
    "launch/": by("POST workspaces/", berth="berth launch"),
    "launch/answer/": by("POST estimate/"),
    "launch/templates/": by("POST templates/"),
    "launch/templates/<uuid:id>/delete/": by("DELETE templates/<uuid:id>/"),
    "add-ssh-key/": by("POST ssh-keys/", berth="berth keys add"),
    "jobs/new/": by("POST jobs/", berth="berth jobs submit"),
    "jobs/new/answer/": by("POST estimate/"),
    "jobs/bulk/": by("POST jobs/<uuid:id>/cancel/", "DELETE jobs/<uuid:id>/", berth="berth jobs cancel, api"),
    "jobs/<uuid:id>/stop-rest/": by("POST jobs/<uuid:id>/stop-rest/"),
    "jobs/<uuid:id>/<str:verb>/": by(
        "POST jobs/<uuid:id>/cancel/", "POST jobs/<uuid:id>/retry/", "POST jobs/<uuid:id>/retry-failed/",
        "POST jobs/<uuid:id>/duplicate/", "DELETE jobs/<uuid:id>/", berth="berth jobs cancel, api",
    ),
    "alerts/<uuid:id>/<str:verb>/": by(
        "POST alerts/<uuid:id>/acknowledge/", "POST alerts/<uuid:id>/silence/", "POST alerts/<uuid:id>/resolve/"
    ),
    "alerts/routes/": by("POST alert-routes/"),
    "alerts/routes/<uuid:id>/": by("PATCH alert-routes/<uuid:id>/"),
    "alerts/routes/<uuid:id>/<str:verb>/": by("POST alert-routes/<uuid:id>/test/", "DELETE alert-routes/<uuid:id>/"),
    "connections/": by("POST connections/"),
    "connections/<uuid:id>/": by("PATCH connections/<uuid:id>/"),
    "connections/<uuid:id>/delete/": by("DELETE connections/<uuid:id>/"),
    "volumes/": by("POST volumes/"),
    "volumes/<uuid:id>/": by("PATCH volumes/<uuid:id>/"),
    "volumes/<uuid:id>/delete/": by("DELETE volumes/<uuid:id>/"),
    "volumes/adopt/": by("POST volumes/adopt/"),
    "volumes/<uuid:id>/confirm/": by("POST volumes/<uuid:id>/confirm/"),
    "volumes/<uuid:id>/inspect/": by("POST volumes/<uuid:id>/inspect/"),
    "volumes/<uuid:id>/restore/": by("POST volumes/<uuid:id>/restore/"),
    "volumes/<uuid:id>/transfer/": by("POST volumes/<uuid:id>/transfer/"),
    "volumes/<uuid:id>/main/": by("PATCH volumes/<uuid:id>/"),
    "volumes/<uuid:id>/snapshot/": by("POST volumes/<uuid:id>/snapshot/"),
    "volumes/<uuid:id>/publish/": by("POST volumes/<uuid:id>/publish/"),
    "volumes/<uuid:id>/clone/": by("POST volumes/<uuid:id>/clone/"),
    "volumes/<uuid:id>/snapshots/<uuid:snapshot>/delete/": by("DELETE volumes/<uuid:id>/snapshots/<uuid:snapshot>/"),
    "volumes/<uuid:id>/files/": by(f"POST {FILES}-session/", f"PUT {FILES}/content/", berth=""),
    "volumes/<uuid:id>/files/close/": by(f"DELETE {FILES}-session/"),
    "volumes/<uuid:id>/files/folder/": by(f"POST {FILES}/"),
    "volumes/<uuid:id>/files/rename/": by(f"PATCH {FILES}/content/"),
    "volumes/<uuid:id>/files/delete/": by(f"DELETE {FILES}/content/"),
    "post-mortems/<uuid:id>/": by("POST post-mortems/<uuid:id>/notes/"),
    "workspaces/bulk/": by("POST workspaces/<uuid:id>/stop/", "DELETE workspaces/<uuid:id>/", berth="berth stop, api"),
    "workspaces/<uuid:id>/apps/": by("POST workspaces/<uuid:id>/apps/"),
    "workspaces/<uuid:id>/apps/<int:port>/": by(
        "PATCH workspaces/<uuid:id>/apps/<int:port>/", "DELETE workspaces/<uuid:id>/apps/<int:port>/"
    ),
    "workspaces/<uuid:id>/shares/": by("POST workspaces/<uuid:id>/shares/"),
    "workspaces/<uuid:id>/shares/<uuid:share>/end/": by("DELETE workspaces/<uuid:id>/shares/<uuid:share>/"),
    "workspaces/<uuid:id>/schedule/": by("PUT workspaces/<uuid:id>/schedule/", "DELETE workspaces/<uuid:id>/schedule/"),
    "workspaces/<uuid:id>/clone/": by("POST workspaces/<uuid:id>/clone/"),
    "workspaces/<uuid:id>/settings/": by("PATCH workspaces/<uuid:id>/"),
    "workspaces/<uuid:id>/instead/": by("PATCH workspaces/<uuid:id>/"),
    "workspaces/<uuid:id>/delete/": by("DELETE workspaces/<uuid:id>/"),
    "workspaces/<uuid:id>/<str:verb>/": by(
        "POST workspaces/<uuid:id>/start/", "POST workspaces/<uuid:id>/stop/", "POST workspaces/<uuid:id>/restart/",
        "POST workspaces/<uuid:id>/extend/", "POST workspaces/<uuid:id>/keep-alive/",
        berth="berth start, stop, extend, api",
    ),
}



def configured(request: str, *more: str) -> Row:
    """One object by its own address, or many by a file. `more`: what else its page does."""
    return by(request, "PUT configuration/", *more, berth=f"berth configuration apply{', api' if more else ''}")


DOCTOR = by("GET clusters/<slug:cluster>/doctor/")
IDLE = by("PUT configuration/", berth="berth configuration apply")
# Of a model in the admin: add, change, delete, the addresses of its page, and its actions; see PREVIEWED, too.
ADMIN: dict[str, Row] = {
    "accounts.announcement add": by("POST announcements/"),
    "accounts.announcement change": by("PATCH announcements/<uuid:id>/"),
    "accounts.announcement delete": by("DELETE announcements/<uuid:id>/"),
    "accounts.announcement end": by("DELETE announcements/<uuid:id>/"),
    "accounts.user add": by("POST people/"),
    "accounts.user change": by(
        "PATCH people/<username:username>/", "POST people/<username:username>/password/", *MEMBERS
    ),
    "accounts.user delete": by("DELETE people/<username:username>/"),
    "accounts.user deactivate": by("PATCH people/<username:username>/"),
    "accounts.user reactivate": by("PATCH people/<username:username>/"),
    "accounts.user reset_second_factor": by("POST people/<username:username>/reset-second-factor/"),
    "accounts.user accounts_user_import": by("POST people/", "POST tenants/<slug:slug>/members/"),
    "accounts.tenant add": configured("POST tenants/"),
    "accounts.tenant change": configured("PATCH tenants/<slug:slug>/", *LOG_LIMITS, *MEMBERS),
    "accounts.tenant delete": configured("DELETE tenants/<slug:slug>/"),
    "clusters.cluster add": configured("POST clusters/"),
    "clusters.cluster change": configured("PATCH clusters/<slug:cluster>/"),
    "clusters.cluster delete": configured("DELETE clusters/<slug:cluster>/"),
    "clusters.cluster test_connection": DOCTOR,
    "clusters.cluster clusters_cluster_test": DOCTOR,
    "clusters.cluster clusters_cluster_doctor": DOCTOR,
    "clusters.cluster clusters_cluster_prove": by("POST clusters/<slug:cluster>/prove/"),
    "clusters.node cordon": by("POST nodes/<str:name>/cordon/"),
    "clusters.node uncordon": by("POST nodes/<str:name>/uncordon/"),
    "clusters.node drain_10": by("POST nodes/<str:name>/drain/"),
    "clusters.node drain_60": by("POST nodes/<str:name>/drain/"),
    "clusters.node drain_1440": by("POST nodes/<str:name>/drain/"),
    "clusters.unknowncause dismiss": by("POST unexplained-messages/<slug:digest>/"),
    "clusters.unknowncause delete": by("DELETE unexplained-messages/<slug:digest>/"),
    "jobs.job cancel": by("POST jobs/<uuid:id>/cancel/", berth="berth jobs cancel"),
    "jobs.job remove": by("DELETE jobs/<uuid:id>/"),
    "monitoring.agenttoken add": by("POST agent-tokens/"),
    "monitoring.agenttoken revoke": by("DELETE agent-tokens/<uuid:id>/"),
    "monitoring.alertroute send_test": by("POST alert-routes/<uuid:id>/test/"),
    "monitoring.finding accept": by("POST drift/<uuid:id>/adopt/"),
    "monitoring.finding recreate": by("POST drift/<uuid:id>/recreate/"),
    "monitoring.finding delete_object": by("POST drift/<uuid:id>/delete/"),
    "monitoring.finding delete_data": by("POST drift/<uuid:id>/delete/"),
    "monitoring.finding monitoring_finding_look": by("POST drift/look/"),
    "monitoring.idlepolicy add": IDLE,
    "monitoring.idlepolicy change": IDLE,
    "monitoring.idlepolicy delete": IDLE,
    "monitoring.validation monitoring_validation_begin": by(f"POST {NODE_ROWS}"),
    "quotas.booking cancel": by("DELETE bookings/<uuid:id>/"),
    "quotas.budget add": configured("POST budgets/"),
    "quotas.budget change": configured("PATCH budgets/<slug:slug>/", "POST budget-hours/"),
    "quotas.budget delete": configured("DELETE budgets/<slug:slug>/"),
    "quotas.flavor add": configured("POST flavors/"),
    "quotas.flavor change": configured("PATCH flavors/<slug:flavor>/"),
    "quotas.flavor delete": configured("DELETE flavors/<slug:flavor>/"),
    "quotas.pool add": configured("POST pools/"),
    "quotas.pool change": configured("PATCH pools/<slug:pool>/"),
    "quotas.pool delete": configured("DELETE pools/<slug:pool>/"),
    "quotas.quota add": configured("POST quotas/"),
    "quotas.quota change": configured("PATCH quotas/<slug:slug>/<slug:pool>/"),
    "quotas.quota delete": configured("DELETE quotas/<slug:slug>/<slug:pool>/"),
    "quotas.tenantlimit add": configured("POST limits/"),
    "quotas.tenantlimit change": configured("PATCH limits/<slug:slug>/"),
    "quotas.tenantlimit delete": configured("DELETE limits/<slug:slug>/"),
    "workloads.image add": configured("POST images/"),
    "workloads.image change": configured("PATCH images/<slug:image>/"),
    "workloads.image delete": configured("DELETE images/<slug:image>/"),
    "workspaces.workspace stop": by("POST workspaces/<uuid:id>/stop/", berth="berth stop"),
}
# Actions with a preview that have no address of their own; `test_parity.py` compares them with the admin's lists.
PREVIEWED = (
    "accounts.apitoken revoke",
    "accounts.notice send_again",
    "clusters.cluster require_isolation",
    "clusters.cluster run_without_isolation",
    "clusters.node forget_agent",
    "clusters.node test_gpus",
    "monitoring.alertdelivery send_again",
    "monitoring.trouble trust",
    "monitoring.validation overrule",
    "quotas.claim confirm_end",
    "quotas.pool close",
    "quotas.pool open",
)
# fmt: on


def by_name() -> dict[str, Row]:
    """All rows: addresses of pages, then what the admin does, by name."""
    admin = ADMIN | {name: by(f"POST admin-actions/{name.replace(' ', '/')}/") for name in PREVIEWED}
    return PAGES | dict(sorted(admin.items()))


def rows() -> dict[str, Row]:
    """All rows of the page: addresses as people know them, then the admin's."""
    return {f"{'/' if name in PAGES else '/admin/ '}{name}": row for name, row in by_name().items()}


def commands() -> set[str]:
    """Commands of `berth` that rows name, without `berth` itself."""
    named = {row.berth.removeprefix("berth ") for row in by_name().values() if row.requests and row.berth}
    return {command for names in named for command in names.split(", ")}


def text() -> str:
    lines = [HEAD, "| Page | API | `berth` |", "| --- | --- | --- |"]
    for name, row in rows().items():
        requests = ", ".join(f"`{request}`" for request in row.requests) or row.why
        berth = f"`{row.berth}`" if row.requests and row.berth else ""
        lines.append(f"| `{name}` | {requests} | {berth or '–'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
