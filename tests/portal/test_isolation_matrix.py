"""Access matrix: all addresses and methods, requested by everybody. An address that is not in the table fails.

Codes are in the order of WHO (of PEOPLE for pages). A caller who is not signed in, or whose token or session has ended,
gets 401 from the API, and a page redirects them to the sign-in. Each request is rolled back before the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts import members
from accounts.access import Actor
from accounts.credentials import sessions, tokens
from accounts.models import APIToken, Membership, Role, Scope, User
from clusters.models import Cluster
from monitoring.intake import tokens as agents
from tests.portal.addresses import ALL, Address
from tests.portal.isolation import NOWHERE, PEOPLE, SHARERS, Stage, make_stage
from tests.portal.parity.bodies import (
    BOOKING,
    CLASS,
    CONNECTION,
    FOREIGN,
    JOB,
    LAUNCH,
    ROUTE,
    SCHEDULE,
    TEMPLATE,
    VOLUME,
)
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKqP3Cr632C2dNhhgKVcon4ldUSAeKiku2yP9O9/bDtY of-nobody"
# "own" is bob, to whom the requested objects belong; "reader" is his token that only reads; "elsewhere" his token
# that is bound to another tenant, of which he is a member too.
WHO = (*PEOPLE, "reader", "elsewhere")
ENDED = ("expired", "revoked", "deactivated")
ENDED_SESSIONS = ("deactivated", "signed out")
# Tokens of bob with one scope.
LONE = (Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES)


@dataclass(frozen=True)
class Row:
    codes: str
    body: Any = None


SEEN = Row("200 200 200 200 200 404 200 404")
OWN = Row("202 403 403 403 403 404 403 404")
MANAGED = Row("202 403 403 202 202 404 403 404")
CLOSED_FILES = Row("409 403 403 403 403 404 409 404")
EVERYBODY = Row("200 200 200 200 200 200 200 200")
ADMINS = Row("403 403 403 403 200 403 403 403")
OF_OWNERS = Row("404 404 404 200 200 404 404 404")
BY_OWNERS = Row("404 404 404 200 200 404 403 404")
# For node agents only, with a token that no person has.
NO_AGENT = Row("401 401 401 401 401 401 401 401")
NO_CLUSTER = Row("403 403 403 403 409 403 403 403")  # none answers here
NO_FINDING = Row("403 403 403 403 404 403 403 403")

IN_USE = Row("403 403 403 403 409 403 403 403")
# What admins configure, one object of it.
SETTINGS = {
    "GET": ADMINS,
    "PATCH": replace(ADMINS, body={"name": "Other"}),
    "DELETE": Row("403 403 403 403 204 403 403 403"),
}
SIZE = {"slug": "new", "name": "New", "pool": "a100", "gpus": 1, "cpu": 1, "memory_mib": 1024}


def made(body: Any) -> Row:
    return Row("403 403 403 403 201 403 403 403", body)


# fmt: off
API: dict[str, dict[str, Row]] = {
    "me/": {"GET": EVERYBODY, "PATCH": Row("200 200 200 200 200 200 403 403", {"theme": "dark"})},
    "me/sessions/": {"DELETE": Row("204 204 204 204 204 204 403 403")},
    "notices/": {"GET": Row("200 200 200 200 200 200 200 403")},
    "notices/read/": {"POST": Row("204 204 204 204 204 204 403 403")},
    "notices/<uuid:id>/read/": {"POST": Row("204 404 404 404 404 404 403 403")},
    "notices/preferences/": {
        "GET": EVERYBODY,
        "PATCH": Row("200 200 200 200 200 200 403 403", {"results": []}),
    },
    "people/": {"GET": ADMINS, "POST": Row("403 403 403 403 201 403 403 403", {"username": "frida"})},
    "people/<username:username>/": {
        "GET": ADMINS,
        "PATCH": replace(ADMINS, body={"last_name": "Baker"}),
        "DELETE": Row("403 403 403 403 409 403 403 403"),  # bob has work
    },
    "people/<username:username>/password/": {"POST": ADMINS},
    "people/<username:username>/reset-second-factor/": {"POST": Row("403 403 403 403 204 403 403 403")},
    "admin-actions/": {"GET": ADMINS},
    "admin-actions/<str:of>/<str:action>/": {  # there is no such pool
        "POST": Row("403 403 403 403 422 403 403 403", {"ids": ["00000000-0000-4000-8000-000000000000"]}),
    },
    "ssh-keys/": {
        "GET": EVERYBODY,
        "POST": Row("201 201 201 201 201 201 403 403", {"name": "new", "public_key": KEY}),
    },
    "ssh-keys/<uuid:id>/": {"DELETE": Row("204 404 404 404 404 404 403 403")},
    "tokens/": {
        "GET": EVERYBODY,
        "POST": Row("201 201 201 201 201 201 403 403", {"name": "new", "scopes": ["read"]}),
    },
    "tokens/<uuid:id>/": {"DELETE": Row("204 404 404 404 404 404 403 404")},
    "device/code/": {"POST": Row("201 201 201 201 201 201 201 201", {"name": "berth on laptop"})},
    "device/token/": {"POST": Row("400 400 400 400 400 400 400 400", {"device_code": "unknown"})},
    "ws-tickets/": {"POST": Row("201 201 201 201 201 201 201 201")},
    "tenants/": {
        "GET": EVERYBODY,
        "POST": Row("403 403 403 403 201 403 403 403", {"slug": "third", "name": "Third"}),
    },
    "tenants/<slug:slug>/": SETTINGS | {"DELETE": IN_USE},
    "tenants/<slug:slug>/members/": {
        "GET": SEEN,
        "POST": Row("403 403 403 201 201 404 403 404", {"username": "carol", "role": "viewer"}),
    },
    "tenants/<slug:slug>/members/<username:username>/": {
        "PATCH": Row("403 403 403 200 200 404 403 404", {"role": "viewer"}),
        "DELETE": Row("403 403 403 204 204 404 403 404"),
    },
    "service-accounts/": {
        "GET": EVERYBODY,
        "POST": Row("403 403 403 201 201 404 403 404", {"tenant": "demo", "name": "new"}),
    },
    "service-accounts/<uuid:id>/": {
        "GET": Row("403 403 403 200 200 404 403 404"),
        "DELETE": Row("403 403 403 204 204 404 403 404"),
    },
    "service-accounts/<uuid:id>/adopt/": {"POST": Row("403 403 403 200 200 404 403 404")},
    "service-accounts/<uuid:id>/tokens/": {
        "GET": Row("403 403 403 200 200 404 403 404"),
        "POST": Row("403 403 403 201 403 404 403 404", {"name": "new", "scopes": ["read"]}),
    },
    "service-accounts/<uuid:id>/tokens/<uuid:token_id>/": {"DELETE": Row("403 403 403 204 204 404 403 404")},
    "announcements/": {
        "GET": EVERYBODY,
        "POST": replace(ADMINS, codes="403 403 403 403 201 403 403 403", body={"text": "New GPUs"}),
    },
    "announcements/<uuid:id>/": {
        "PATCH": replace(ADMINS, body={"text": "Old GPUs"}),
        "DELETE": replace(ADMINS, codes="403 403 403 403 204 403 403 403"),
    },
    "audit/": {"GET": Row("403 403 403 200 200 403 403 403")},
    "configuration/": {"GET": ADMINS, "PUT": replace(ADMINS, body={"pools": []})},
    "clusters/": {"GET": ADMINS, "POST": made({"slug": "far", "name": "Far"})},
    "clusters/<slug:cluster>/": SETTINGS
    | {"PATCH": replace(ADMINS, body={"kubeconfig_path": "/x"}), "DELETE": IN_USE},
    "clusters/<slug:cluster>/doctor/": {"GET": ADMINS},
    "clusters/<slug:cluster>/prove/": {"POST": replace(ADMINS, codes="403 403 403 403 204 403 403 403")},
    "unexplained-messages/": {"GET": ADMINS},
    "unexplained-messages/<slug:digest>/": {"POST": NO_FINDING, "DELETE": NO_FINDING},
    "nodes/": {"GET": ADMINS},
    "pools/": {"GET": EVERYBODY, "POST": made({"slug": "new", "name": "New", "cluster": "main"})},
    "pools/<slug:pool>/": SETTINGS | {"DELETE": IN_USE},
    "flavors/": {"GET": EVERYBODY, "POST": made(SIZE)},
    "flavors/<slug:flavor>/": SETTINGS | {"DELETE": IN_USE},
    "quotas/": {
        "GET": EVERYBODY,
        "POST": replace(ADMINS, codes="403 403 403 403 409 403 403 403", body={"tenant": "demo", "pool": "a100"}),
    },
    "quotas/<slug:slug>/<slug:pool>/": SETTINGS | {"PATCH": replace(ADMINS, body={"weight": 2})},
    "limits/": {"GET": ADMINS, "POST": made({"tenant": "second", "workspaces": 2})},
    "limits/<slug:slug>/": SETTINGS | {"PATCH": replace(ADMINS, body={"workspaces": 9})},
    "log-limits/": {"GET": ADMINS, "POST": made({"tenant": "second", "days": 7})},
    "log-limits/<slug:slug>/": SETTINGS | {"PATCH": replace(ADMINS, body={"days": 9})},
    "budgets/": {"GET": EVERYBODY, "POST": made({"tenant": "second", "gpu_hours": 10})},
    "budgets/<slug:slug>/": SETTINGS | {"PATCH": replace(ADMINS, body={"gpu_hours": 9000})},
    "budgets/<slug:slug>/<username:username>/": SETTINGS | {"PATCH": replace(ADMINS, body={"gpu_hours": 9000})},
    "budget-hours/": {"POST": replace(ADMINS, body={"tenant": "demo", "add_gpu_hours": 2.5})},
    "usage/": {"GET": EVERYBODY},
    "idle/report/": {"GET": EVERYBODY},
    "bookings/": {"GET": EVERYBODY, "POST": Row("403 403 403 201 201 404 403 404", BOOKING)},
    "bookings/<uuid:id>/": {
        "GET": SEEN,
        "PATCH": Row("403 403 403 200 200 404 403 404", {"title": "new"}),
        "DELETE": Row("403 403 403 200 200 404 403 404"),
    },
    "images/": {"GET": EVERYBODY, "POST": made({"slug": "new", "name": "New", "reference": "registry.example/x:1"})},
    "images/<slug:image>/": SETTINGS | {"DELETE": IN_USE},
    "templates/": {"GET": EVERYBODY, "POST": Row("403 403 403 201 201 404 403 404", TEMPLATE)},
    "templates/<uuid:id>/": {
        "GET": SEEN,
        "PATCH": Row("403 403 403 200 200 404 403 404", {"name": "new"}),
        "DELETE": Row("403 403 403 204 204 404 403 404"),
    },
    "class-launches/": {"GET": EVERYBODY, "POST": Row("403 403 403 202 202 404 403 404", CLASS)},
    "class-launches/<uuid:id>/": {
        "GET": Row("403 403 403 200 200 404 403 404"),
        "DELETE": Row("403 403 403 204 204 404 403 404"),
    },
    "class-launches/<uuid:id>/stop/": {"POST": Row("403 403 403 202 202 404 403 404")},
    "class-launches/<uuid:id>/extend/": {"POST": Row("403 403 403 202 202 404 403 404")},
    "class-launches/<uuid:id>/collect/": {"POST": Row("403 403 403 409 409 404 403 404", {"folder": "hand-in"})},
    "estimate/": {"POST": Row("200 200 200 200 200 404 200 404", LAUNCH)},
    "workspaces/": {"GET": EVERYBODY, "POST": Row("201 403 201 201 201 404 403 404", LAUNCH)},
    "workspaces/<uuid:id>/": {
        "GET": SEEN,
        "PATCH": Row("200 403 403 403 403 404 403 404", {"name": "new"}),
        "DELETE": MANAGED,
    },
    "workspaces/<uuid:id>/start/": {"POST": replace(OWN, codes="200 403 403 403 403 404 403 404")},  # it runs
    "workspaces/<uuid:id>/stop/": {"POST": MANAGED},
    "workspaces/<uuid:id>/restart/": {"POST": OWN},
    "workspaces/<uuid:id>/events/": {"GET": SEEN},
    # 409 for callers who may read the logs: nothing was written.
    "workspaces/<uuid:id>/logs/": {"GET": Row("409 403 403 409 409 404 409 404")},
    "workspaces/<uuid:id>/extend/": {"POST": replace(MANAGED, codes="200 403 403 200 200 404 403 404")},  # no end
    "workspaces/<uuid:id>/keep-alive/": {"POST": Row("200 403 403 200 200 404 403 404")},
    "workspaces/<uuid:id>/clone/": {"POST": Row("202 403 202 202 202 404 403 404")},
    "workspaces/<uuid:id>/job/": {"POST": Row("201 403 201 201 201 404 403 404", {"command": ["true"]})},
    "workspaces/<uuid:id>/jupyter/": {"POST": replace(OWN, codes="201 403 403 403 403 404 403 404")},
    "workspaces/<uuid:id>/apps/": {
        "POST": Row("201 403 403 403 403 404 403 404", {"name": "Streamlit", "port": 8501}),
    },
    "workspaces/<uuid:id>/apps/<int:port>/": {
        "PATCH": Row("200 403 403 403 403 404 403 404", {"shared_with": "tenant"}),
        "DELETE": Row("204 403 403 403 403 404 403 404"),
    },
    "workspaces/<uuid:id>/shares/": {
        "GET": Row("200 403 403 200 200 404 200 404"),
        "POST": Row("201 403 403 403 403 404 403 404", {"username": "dora", "role": "look"}),
    },
    "workspaces/<uuid:id>/shares/<uuid:share>/": {"DELETE": replace(MANAGED, codes="204 403 403 204 204 404 403 404")},
    "workspaces/<uuid:id>/schedule/": {
        "GET": Row("200 403 403 200 200 404 200 404"),
        "PUT": Row("200 403 403 403 403 404 403 404", SCHEDULE),
        "DELETE": Row("204 403 403 403 403 404 403 404"),
    },
    "workspaces/<uuid:id>/metrics/": {"GET": SEEN},
    "jobs/": {"GET": EVERYBODY, "POST": Row("201 403 201 201 201 404 403 404", JOB)},
    "jobs/<uuid:id>/": {"GET": SEEN, "DELETE": MANAGED},
    "jobs/<uuid:id>/cancel/": {"POST": MANAGED},
    # It is not over, so nothing is retried.
    "jobs/<uuid:id>/retry/": {"POST": replace(OWN, codes="200 403 403 403 403 404 403 404")},
    "jobs/<uuid:id>/retry-failed/": {"POST": replace(OWN, codes="200 403 403 403 403 404 403 404")},
    "jobs/<uuid:id>/duplicate/": {"POST": OWN},
    "jobs/<uuid:id>/stop-rest/": {"POST": MANAGED},
    "jobs/<uuid:id>/parts/": {"GET": SEEN},
    "jobs/<uuid:id>/events/": {"GET": SEEN},
    "jobs/<uuid:id>/logs/": {"GET": Row("200 403 403 200 200 404 200 404")},
    "logs/": {"GET": Row("400 400 400 400 400 400 400 400")},  # of which tenant: tests/workloads/logs/test_api.py
    "jobs/<uuid:id>/metrics/": {
        "GET": SEEN,
        # It waits in the queue, so nothing is reported.
        "POST": Row("409 403 403 409 409 404 403 404", {"values": {"loss": 1}}),
    },
    "jobs/<uuid:id>/pipeline/": {"GET": SEEN},
    "jobs/<uuid:id>/manifest/": {"GET": Row("200 403 403 200 200 404 200 404")},
    "connections/": {
        "GET": EVERYBODY,
        "POST": Row("201 403 201 201 201 404 403 404", CONNECTION),
    },
    "connections/<uuid:id>/": {
        "GET": Row("200 404 404 404 404 404 200 404"),
        "PATCH": Row("200 404 404 404 404 404 403 404", {"name": "new"}),
        "DELETE": Row("204 404 404 404 404 404 403 404"),
    },
    "volumes/": {
        "GET": Row("200 200 200 200 200 200 200 200"),
        "POST": Row("201 403 201 201 201 404 403 404", VOLUME),
    },
    "volumes/<uuid:id>/": {
        "GET": SEEN,
        "PATCH": replace(MANAGED, codes="200 403 403 200 200 404 403 404", body={"name": "other"}),
        "DELETE": MANAGED,
    },
    "volumes/adopt/": {"POST": replace(ADMINS, codes="403 403 403 403 201 403 403 403", body=FOREIGN)},
    "volumes/<uuid:id>/confirm/": {"POST": replace(OWN, codes="200 403 403 403 403 404 403 404")},
    "volumes/<uuid:id>/inspect/": {"POST": replace(OWN, codes="200 403 403 403 200 404 403 404")},
    "volumes/<uuid:id>/restore/": {"POST": replace(MANAGED, codes="200 403 403 200 200 404 403 404")},
    "volumes/<uuid:id>/transfer/": {
        "POST": Row("200 403 403 200 200 404 403 404", {"username": "alice"}),
    },
    "volumes/<uuid:id>/snapshot/": {"POST": MANAGED},
    "volumes/<uuid:id>/snapshots/": {"GET": SEEN},
    "volumes/<uuid:id>/snapshots/<uuid:snapshot>/": {"DELETE": MANAGED},
    "volumes/<uuid:id>/publish/": {"POST": MANAGED},
    # A colleague's volume is as little there to copy as a stranger's, unless it is shared.
    "volumes/<uuid:id>/clone/": {"POST": Row("202 403 422 202 202 404 403 404", {"name": "copy"})},
    # Its owner alone opens files that are not shared; no session is ready here.
    "volumes/<uuid:id>/files-session/": {
        "GET": replace(OWN, codes="200 403 403 403 403 404 200 404"),
        "POST": OWN,
        "DELETE": replace(OWN, codes="200 403 403 403 403 404 403 404"),
    },
    "volumes/<uuid:id>/files/": {
        "GET": CLOSED_FILES,
        "POST": replace(CLOSED_FILES, codes="409 403 403 403 403 404 403 404", body={"path": "a"}),
    },
    "volumes/<uuid:id>/files/content/": {
        "GET": CLOSED_FILES,
        "PUT": replace(CLOSED_FILES, codes="409 403 403 403 403 404 403 404"),
        "PATCH": replace(CLOSED_FILES, codes="409 403 403 403 403 404 403 404", body={"to": "b"}),
        "DELETE": replace(CLOSED_FILES, codes="409 403 403 403 403 404 403 404"),
    },
    "post-mortems/": {"GET": EVERYBODY},
    "post-mortems/<uuid:id>/": {"GET": SEEN},
    "post-mortems/<uuid:id>/notes/": {"POST": Row("201 403 403 201 201 404 403 404", {"text": "It was the cable."})},
    "alerts/": {"GET": EVERYBODY},
    "alerts/<uuid:id>/": {"GET": OF_OWNERS},
    "alerts/<uuid:id>/members/": {"GET": OF_OWNERS},
    "alerts/<uuid:id>/deliveries/": {"GET": OF_OWNERS},
    "alerts/<uuid:id>/acknowledge/": {"POST": BY_OWNERS},
    "alerts/<uuid:id>/resolve/": {"POST": BY_OWNERS},
    "alerts/<uuid:id>/silence/": {"POST": replace(BY_OWNERS, body={"minutes": 5})},
    "alert-routes/": {"GET": EVERYBODY, "POST": Row("403 403 403 201 201 404 403 404", ROUTE)},
    "alert-routes/<uuid:id>/": {
        "PATCH": replace(BY_OWNERS, body={"name": "new"}),
        "DELETE": replace(BY_OWNERS, codes="404 404 404 204 204 404 403 404"),
    },
    "alert-routes/<uuid:id>/test/": {"POST": replace(BY_OWNERS, codes="404 404 404 202 202 404 403 404")},
    "alert-routes/<uuid:id>/deliveries/": {"GET": OF_OWNERS},
    "agent/samples/": {"POST": NO_AGENT},
    "agent/health/": {"POST": NO_AGENT},
    "nodes/<str:name>/cordon/": {"POST": NO_CLUSTER},
    "nodes/<str:name>/uncordon/": {"POST": NO_CLUSTER},
    "nodes/<str:name>/drain/": {"POST": NO_CLUSTER},
    "drift/": {"GET": ADMINS},
    "drift/look/": {"POST": replace(ADMINS, codes="403 403 403 403 204 403 403 403")},
    "agent-tokens/": {
        "GET": ADMINS,
        "POST": replace(ADMINS, codes="403 403 403 403 201 403 403 403", body={"cluster": "main", "name": "new"}),
    },
    "agent-tokens/<uuid:id>/": {"DELETE": NO_FINDING},
    "drift/<uuid:id>/adopt/": {"POST": NO_FINDING},
    "drift/<uuid:id>/recreate/": {"POST": NO_FINDING},
    "drift/<uuid:id>/delete/": {"POST": NO_FINDING},
}

# Open to callers who are not signed in, too: a terminal signs in by them (tests/accounts/test_device_codes.py).
OPEN = {"device/code/", "device/token/"}
# A page has a seventh code: of a caller who is not signed in.
PUBLIC = "200 200 200 200 200 200 200"
PAGE = "200 200 200 200 200 200 302"
NO_SUCH_METHOD = "405 405 405 405 405 405 302"
TO_PROFILE = "302 302 302 302 302 302 302"
REFUSED_FORM = "422 422 422 422 422 422 302"
SEEN_PAGE = "200 200 200 200 200 404 302"
MANAGED_PAGE = "302 403 403 302 302 404 302"
PAGES: dict[str, tuple[str, str]] = {  # GET, POST
    "": (PAGE, NO_SUCH_METHOD),
    "api/schema/": (PUBLIC, ""),
    "api/docs/": (PAGE, NO_SUCH_METHOD),
    "help/causes/": (PAGE, PAGE),
    "first-run/": ("403 403 403 403 200 403 302", "403 403 403 403 302 403 302"),  # what is left is to try it
    "first-run/<slug:step>/": ("403 403 403 403 200 403 302", "403 403 403 403 422 403 302"),
    "help/guide/<slug:slug>/": ("404 404 404 404 404 404 302", NO_SUCH_METHOD),  # there is none of that name
    "tenant/": (NO_SUCH_METHOD, TO_PROFILE),
    "theme/": (NO_SUCH_METHOD, TO_PROFILE),
    "usage/": (PAGE, NO_SUCH_METHOD),
    "idle/": (PAGE, NO_SUCH_METHOD),
    "bookings/": (PAGE, "403 403 403 422 422 403 302"),
    "bookings/answer/": (NO_SUCH_METHOD, "403 403 403 200 200 403 302"),
    "bookings/<uuid:id>/": (SEEN_PAGE, "403 403 403 422 422 404 302"),
    "bookings/<uuid:id>/cancel/": ("403 403 403 200 200 404 302", "403 403 403 302 302 404 302"),
    "gpus/": (PAGE, NO_SUCH_METHOD),
    "gpus/<slug:slug>/": ("404 404 404 404 404 404 302", NO_SUCH_METHOD),  # there is no pool of that name
    "healthz": (PUBLIC, PUBLIC),
    "metrics": (PUBLIC, PUBLIC),
    "sign-in/": ("302 302 302 302 302 302 200", "302 302 302 302 302 302 200"),
    # No provider is set up here, and no sign-in waits for a code.
    "sign-in/oidc/": ("404 404 404 404 404 404 404", "404 404 404 404 404 404 404"),
    "sign-in/oidc/callback/": ("404 404 404 404 404 404 404", "404 404 404 404 404 404 404"),
    "sign-in/password/": (TO_PROFILE, TO_PROFILE),
    "sign-in/code/": (TO_PROFILE, TO_PROFILE),
    "sign-in/set-up/": (TO_PROFILE, TO_PROFILE),
    "profile/connect/": (NO_SUCH_METHOD, "404 404 404 404 404 404 302"),
    "profile/connect-directory/": ("404 404 404 404 404 404 302", "404 404 404 404 404 404 302"),
    "profile/password/": (PAGE, REFUSED_FORM),
    "profile/second-factor/": (PAGE, REFUSED_FORM),
    "profile/second-factor/recovery-codes/": (TO_PROFILE, TO_PROFILE),
    "profile/second-factor/remove/": (TO_PROFILE, TO_PROFILE),
    "sign-out/": ("405 405 405 405 405 405 405", TO_PROFILE),
    "profile/": (PAGE, PAGE),
    "profile/ssh-keys/": (TO_PROFILE, REFUSED_FORM),
    "profile/ssh-keys/<uuid:id>/remove/": ("200 404 404 404 404 404 302", "302 404 404 404 404 404 302"),
    "profile/tokens/": (TO_PROFILE, REFUSED_FORM),
    "profile/tokens/<uuid:id>/revoke/": ("200 404 404 404 404 404 302", "302 404 404 404 404 404 302"),
    "profile/preferences/": (TO_PROFILE, TO_PROFILE),
    "profile/language/": (TO_PROFILE, TO_PROFILE),
    "profile/sign-out-everywhere/": (TO_PROFILE, TO_PROFILE),
    "device/": (PAGE, REFUSED_FORM),
    "audit/": ("403 403 403 200 200 403 302", NO_SUCH_METHOD),
    "tenants/": (PAGE, NO_SUCH_METHOD),
    "tenants/<slug:slug>/": (SEEN_PAGE, NO_SUCH_METHOD),
    "tenants/<slug:slug>/service-accounts/": (NO_SUCH_METHOD, "403 403 403 422 422 404 302"),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/": (
        "403 403 403 200 200 404 302", "403 403 403 422 422 404 302"
    ),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/adopt/": (
        "403 403 403 200 200 404 302", "403 403 403 302 302 404 302"
    ),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/delete/": (
        "403 403 403 200 200 404 302", "403 403 403 302 302 404 302"
    ),
    "tenants/<slug:slug>/service-accounts/<uuid:id>/tokens/<uuid:token_id>/revoke/": (
        "403 403 403 200 200 404 302", "403 403 403 302 302 404 302"
    ),
    "tenants/<slug:slug>/members/": (NO_SUCH_METHOD, "403 403 403 422 422 404 302"),
    "tenants/<slug:slug>/members/<username:username>/": (NO_SUCH_METHOD, "403 403 403 302 302 404 302"),
    "tenants/<slug:slug>/members/<username:username>/remove/": (
        "403 403 403 200 200 404 302",
        "403 403 403 302 302 404 302",
    ),
    "notices/": (PAGE, NO_SUCH_METHOD),
    "notices/read/": (NO_SUCH_METHOD, TO_PROFILE),
    "notices/settings/": (PAGE, TO_PROFILE),
    "notices/<uuid:id>/": ("302 404 404 404 404 404 302", NO_SUCH_METHOD),
    "notices/unsubscribe/<str:token>/": (PUBLIC, PUBLIC),
    "launch/": (PAGE, "422 200 422 422 422 422 302"),  # a viewer is told that they cannot launch
    "launch/answer/": (NO_SUCH_METHOD, "404 404 404 404 404 404 302"),  # there is no such answer
    "launch/templates/": (NO_SUCH_METHOD, "422 200 422 422 422 422 302"),  # as launch/
    "launch/templates/<uuid:id>/delete/": (NO_SUCH_METHOD, "403 403 403 302 302 404 302"),
    "class-launches/": ("403 403 403 200 200 403 302", "403 403 403 422 422 403 302"),
    "class-launches/<uuid:id>/": ("403 403 403 200 200 404 302", NO_SUCH_METHOD),
    "class-launches/<uuid:id>/people/": (NO_SUCH_METHOD, "403 403 403 422 422 404 302"),
    "class-launches/<uuid:id>/collect/": (NO_SUCH_METHOD, "403 403 403 302 302 404 302"),  # no folder is named
    "class-launches/<uuid:id>/<str:verb>/": ("403 403 403 200 200 404 302", "403 403 403 302 302 404 302"),
    "add-ssh-key/": (PAGE, REFUSED_FORM),
    "ssh/config/": ("404 404 404 404 404 404 302", NO_SUCH_METHOD),  # there is no jump
    "jobs/": (PAGE, NO_SUCH_METHOD),
    "jobs/new/": (PAGE, "422 200 422 422 422 422 302"),
    "jobs/new/answer/": (NO_SUCH_METHOD, "404 404 404 404 404 404 302"),  # there is no such answer
    "jobs/bulk/": (NO_SUCH_METHOD, "404 404 404 404 404 404 302"),  # there is no such action
    "workspaces/bulk/": (NO_SUCH_METHOD, "404 404 404 404 404 404 302"),
    "jobs/<uuid:id>/": (SEEN_PAGE, NO_SUCH_METHOD),
    "jobs/<uuid:id>/parts/": (SEEN_PAGE, NO_SUCH_METHOD),
    "jobs/<uuid:id>/stop-rest/": (MANAGED_PAGE, "200 403 403 200 200 404 302"),  # it asks which
    "jobs/<uuid:id>/activity/": (SEEN_PAGE, NO_SUCH_METHOD),
    "jobs/<uuid:id>/settings/": (SEEN_PAGE, NO_SUCH_METHOD),
    "jobs/<uuid:id>/<str:verb>/": ("200 403 403 200 200 404 302", MANAGED_PAGE),
    "alerts/": (PAGE, NO_SUCH_METHOD),
    "alerts/<uuid:id>/": ("404 404 404 200 200 404 302", NO_SUCH_METHOD),
    "alerts/<uuid:id>/<str:verb>/": (NO_SUCH_METHOD, "404 404 404 302 302 404 302"),
    "alerts/routes/": (PAGE, REFUSED_FORM),
    "alerts/routes/<uuid:id>/": ("404 404 404 200 200 404 302", "404 404 404 422 422 404 302"),
    "alerts/routes/<uuid:id>/<str:verb>/": (NO_SUCH_METHOD, "404 404 404 302 302 404 302"),
    "connections/": (PAGE, REFUSED_FORM),
    "connections/<uuid:id>/": ("200 404 404 404 404 404 302", "422 404 404 404 404 404 302"),
    "connections/<uuid:id>/delete/": ("200 404 404 404 404 404 302", "302 404 404 404 404 404 302"),
    "volumes/": (PAGE, REFUSED_FORM),
    "volumes/<uuid:id>/": (SEEN_PAGE, "422 403 403 422 422 404 302"),
    "volumes/<uuid:id>/delete/": ("200 403 403 200 200 404 302", MANAGED_PAGE),
    "volumes/adopt/": ("403 403 403 403 200 403 302", "403 403 403 403 422 403 302"),
    "volumes/<uuid:id>/confirm/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    "volumes/<uuid:id>/inspect/": (NO_SUCH_METHOD, "302 403 403 403 302 404 302"),
    "volumes/<uuid:id>/restore/": (NO_SUCH_METHOD, MANAGED_PAGE),
    "volumes/<uuid:id>/transfer/": (NO_SUCH_METHOD, MANAGED_PAGE),
    "volumes/<uuid:id>/main/": (NO_SUCH_METHOD, MANAGED_PAGE),
    "volumes/<uuid:id>/snapshot/": (NO_SUCH_METHOD, MANAGED_PAGE),
    "volumes/<uuid:id>/publish/": (NO_SUCH_METHOD, MANAGED_PAGE),
    "volumes/<uuid:id>/clone/": (NO_SUCH_METHOD, SEEN_PAGE.replace("200", "302")),
    "volumes/<uuid:id>/snapshots/<uuid:snapshot>/delete/": ("200 403 403 200 200 404 302", MANAGED_PAGE),
    "volumes/<uuid:id>/files/": ("200 403 403 403 403 404 302", "302 403 403 403 403 404 302"),
    "volumes/<uuid:id>/files/close/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    "volumes/<uuid:id>/files/folder/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    "volumes/<uuid:id>/files/rename/": ("200 403 403 403 403 404 302", "302 403 403 403 403 404 302"),
    "volumes/<uuid:id>/files/delete/": ("200 403 403 403 403 404 302", "302 403 403 403 403 404 302"),
    "post-mortems/": (PAGE, NO_SUCH_METHOD),
    "post-mortems/<uuid:id>/": (SEEN_PAGE, "422 403 403 422 422 404 302"),
    "workspaces/sparklines/": (PAGE, NO_SUCH_METHOD),
    "workspaces/<uuid:id>/": (SEEN_PAGE, NO_SUCH_METHOD),
    "workspaces/<uuid:id>/logs/": (SEEN_PAGE, NO_SUCH_METHOD),
    "workspaces/<uuid:id>/metrics/": (SEEN_PAGE, NO_SUCH_METHOD),
    "workspaces/<uuid:id>/gauges/": (SEEN_PAGE, NO_SUCH_METHOD),
    "workspaces/<uuid:id>/apps/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    "workspaces/<uuid:id>/apps/<int:port>/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    # Who gets into an app that is shared: tests/workspaces/ways_in/test_gateway_apps.py
    "workspaces/<uuid:id>/apps/<int:port>/open/": ("302 403 403 403 403 404 302", NO_SUCH_METHOD),
    "workspaces/<uuid:id>/shares/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    "workspaces/<uuid:id>/shares/<uuid:share>/end/": (NO_SUCH_METHOD, MANAGED_PAGE),
    "workspaces/<uuid:id>/schedule/": (NO_SUCH_METHOD, "422 403 403 403 403 404 302"),
    "workspaces/<uuid:id>/clone/": (NO_SUCH_METHOD, "302 403 302 302 302 404 302"),
    "workspaces/<uuid:id>/settings/": (SEEN_PAGE, "422 403 403 403 403 404 302"),
    "workspaces/<uuid:id>/instead/": (NO_SUCH_METHOD, "302 403 403 403 403 404 302"),
    "workspaces/<uuid:id>/delete/": ("200 403 403 200 200 404 302", MANAGED_PAGE),
    "workspaces/<uuid:id>/open/": ("302 403 403 403 403 404 302", NO_SUCH_METHOD),
    "workspaces/<uuid:id>/<str:verb>/": ("200 403 403 200 200 404 302", MANAGED_PAGE),
}
# What those with whom a workspace is shared, to look and to work, are answered otherwise than a member whom its owner
# did not name. The share in the address is that of "sharer-work", who may give it back.
SHARED: dict[tuple[str, str], str] = {
    ("GET", "api/v1/workspaces/<uuid:id>/logs/"): "409 409",
    ("GET", "api/v1/workspaces/<uuid:id>/shares/"): "200 200",
    ("GET", "api/v1/workspaces/<uuid:id>/schedule/"): "200 200",
    ("DELETE", "api/v1/workspaces/<uuid:id>/shares/<uuid:share>/"): "403 204",
    ("POST", "workspaces/<uuid:id>/shares/<uuid:share>/end/"): "403 302",
    ("GET", "workspaces/<uuid:id>/apps/<int:port>/open/"): "403 302",
    ("GET", "workspaces/<uuid:id>/open/"): "403 302",
}
# fmt: on


OF_API = [a for a in ALL if a.name.startswith("api/v1/")]
# `readyz` waits for parts that are not up here; it is the same for everybody.
OF_PAGES = [a for a in ALL if not a.name.startswith(("api/v1/", "admin/", "readyz"))]


@pytest.fixture(autouse=True)
def _nothing_for_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes long and does not affect access: the schema, time zones, copies of templates' contexts."""
    monkeypatch.setattr(
        "drf_spectacular.generators.SchemaGenerator.get_schema", lambda *_, **__: {"paths": {}}
    )
    monkeypatch.setattr("portal.views.operations", dict)  # else its cache would keep the empty schema
    monkeypatch.setattr("accounts.forms.time_zone_choices", list)
    monkeypatch.setattr("django.test.client.store_rendered_templates", lambda *_, **__: None)


@pytest.fixture(scope="module")
def stage(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Stage]:
    with shared_rows(django_db_blocker):
        yield let_in(make_stage())


def let_in(stage: Stage) -> Stage:
    own = stage.people["own"].user
    secrets = {who: secret_of(who, stage) for who in (*WHO, *SHARERS)} | ended(stage)
    secrets |= {scope: tokens.issue(own, scope, [scope], None, 1)[1] for scope in LONE}
    APIToken.objects.update(last_used_at=timezone.now())  # else each request would write its own use
    people = {who: session_of(stage.people[who]) for who in (*PEOPLE, *SHARERS)}
    return replace(stage, secrets=secrets, sessions=people | ended_sessions(stage))


def ended_sessions(stage: Stage) -> dict[str, str]:
    """Return sessions of two admins that ended a moment ago."""
    found = {}
    for name in ENDED_SESSIONS:
        actor = Actor(User.objects.create_user(f"was-{name}".replace(" ", "-"), is_staff=True))
        found[name] = session_of(actor)
        if name == "deactivated":
            members.set_active(stage.people["admin"], actor.user, active=False)
        else:
            sessions.sign_out_everywhere(actor)
    return found


def secret_of(who: str, stage: Stage) -> str:
    """Return the secret of a new token for this caller."""
    actor = stage.people["own" if who in ("reader", "elsewhere") else who]
    scopes = [Scope.READ] if who == "reader" else [s for s in Scope if s != Scope.ADMIN or who == "admin"]
    tenant = stage.second if who == "elsewhere" else None
    return tokens.issue(actor.user, "test", scopes, tenant, 1)[1]


def ended(stage: Stage) -> dict[str, str]:
    """Return secrets that open nothing (any more), by what they are; and an admin's without the scope `admin`."""
    own, admin = stage.people["own"].user, stage.people["admin"].user
    left = User.objects.create_user("eve", is_active=False)
    Membership.objects.create(tenant=stage.demo, user=left, role=Role.OWNER)
    every = [Scope.READ, Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES]
    (old, expired), (gone, revoked) = (tokens.issue(own, name, every, None, 1) for name in ("old", "gone"))
    APIToken.objects.filter(pk=old.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    tokens.revoke(stage.people["own"], gone.pk)
    return {
        "expired": expired,
        "revoked": revoked,
        "deactivated": tokens.issue(left, "left", every, None, 1)[1],
        "agent": agents.issue(None, Cluster.objects.get(), "node")[1],
        "limited admin": tokens.issue(admin, "limited", every, None, 1)[1],
    }


def session_of(actor: Actor) -> str:
    """Return the session cookie of the signed-in actor."""
    client = Client()
    client.force_login(actor.user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def ask(client: Client, method: str, path: str, body: Any = None) -> Any:
    """Return the answer, and undo the request's changes."""
    with transaction.atomic():
        text = "" if body is None else json.dumps(body)
        answer = client.generic(method, path, text, content_type="application/json")
        transaction.set_rollback(True)
    return answer


def asked(stage: Stage, address: Address, method: str, clients: Iterable[Client], body: Any = None) -> str:
    path = address.path(stage.ids_for(address.name))
    return " ".join(str(ask(client, method, path, body).status_code) for client in clients)


@pytest.mark.parametrize("address", OF_API, ids=lambda address: address.name)
def test_the_api_answers_everybody_as_the_table_says(stage: Stage, address: Address) -> None:
    name = address.name.removeprefix("api/v1/")
    rows = API[name]
    assert set(rows) == set(address.methods)
    scripts = [stage.script(who) for who in WHO]
    for method, row in rows.items():
        assert asked(stage, address, method, scripts, row.body) == row.codes, method
        outside = [Client(), *(stage.script(ended) for ended in ENDED)]
        refusal = row.codes.split()[0] if name in OPEN else "401"
        assert set(asked(stage, address, method, outside, row.body).split()) == {refusal}, method
        if "agent/" not in name and name not in OPEN:
            foreign = [stage.script("agent"), stage.script("limited admin"), stage.script("stranger")]
            of_agent, limited, stranger = asked(stage, address, method, foreign, row.body).split()
            assert (of_agent, limited) == ("401", stranger), method


@pytest.mark.parametrize("address", OF_API, ids=lambda address: address.name)
def test_the_api_answers_browsers_and_tokens_of_one_scope_with_no_more(
    stage: Stage, address: Address
) -> None:
    """A browser gets what its person's widest token gets; a token of one scope that, or a refusal."""
    browsers = [stage.browser("own"), *(stage.browser(ended) for ended in ENDED_SESSIONS)]
    name = address.name.removeprefix("api/v1/")
    for method, row in API[name].items():
        own = row.codes.split()[0]
        signed_in, *ended = asked(stage, address, method, browsers, row.body).split()
        assert signed_in == own, method
        assert set(ended) == {own if name in OPEN else "401"}, method
        lone = asked(stage, address, method, [stage.script(scope) for scope in LONE], row.body).split()
        assert set(lone) <= {own, "403"}, method
        if method == "GET" and own == "200":
            is_of_volumes = "volumes/" in address.name or "connections/" in address.name
            is_of_jobs = "jobs/" in address.name
            opens = ["200" if of_this else "403" for of_this in (is_of_jobs, is_of_volumes)]
            assert lone[1:] == opens, method


@pytest.mark.slow
@pytest.mark.parametrize("address", OF_PAGES, ids=lambda address: address.name)
def test_a_page_answers_everybody_as_the_table_says(stage: Stage, address: Address) -> None:
    browsers = [*(stage.browser(who) for who in PEOPLE), Client()]
    nobody = [stage.script("own"), *(stage.browser(ended) for ended in ENDED_SESSIONS)]
    for method, codes in zip(address.methods, PAGES[address.name], strict=False):
        assert asked(stage, address, method, browsers) == codes, method
        assert set(asked(stage, address, method, nobody).split()) == {codes.split()[-1]}, method


@pytest.mark.parametrize(
    "address",
    [a for a in (*OF_API, *OF_PAGES) if a.name.removeprefix("api/v1/").startswith(("workspaces/", "jobs/<"))],
    ids=lambda address: address.name,
)
@pytest.mark.usefixtures("_through_berth")
def test_a_share_opens_what_the_table_says_and_nothing_else(stage: Stage, address: Address) -> None:
    is_api = address in OF_API
    clients = [(stage.script if is_api else stage.browser)(who) for who in ("member", *SHARERS)]
    for method in address.methods:
        body = API[address.name.removeprefix("api/v1/")][method].body if is_api else None
        member, *sharers = asked(stage, address, method, clients, body).split()
        wanted = SHARED.get((method, address.name), f"{member} {member}")
        assert " ".join(sharers) == wanted, method


@pytest.fixture
def _through_berth(settings: Any) -> None:
    settings.WORKSPACE_DOMAIN = "ws.testserver"


@pytest.mark.parametrize(
    "address", [a for a in (*OF_API, *OF_PAGES) if "<" in a.name], ids=lambda address: address.name
)
def test_what_is_foreign_has_the_bytes_of_what_is_not_there(stage: Stage, address: Address) -> None:
    ids = stage.ids_for(address.name)
    is_api = address in OF_API
    client = stage.script("stranger") if is_api else stage.browser("stranger")
    for method in address.methods:
        row = API[address.name.removeprefix("api/v1/")][method] if is_api else Row("")
        there, nowhere = (ask(client, method, address.path(of), row.body) for of in (ids, ids | NOWHERE))
        assert there.status_code == nowhere.status_code
        assert masked(there) == masked(nowhere)


def test_only_staff_get_into_the_admin(stage: Stage) -> None:
    ids = stage.ids_for("") | {"object_id": "1", "app_label": "accounts", "content_type_id": "1", "url": "x"}
    browsers = {who: stage.browser(who) for who in PEOPLE if who != "admin"}
    everybody, who_may_most = browsers.items(), [("owner", browsers["owner"])]
    for address in ALL:
        if address.name.startswith("admin/"):
            for who, browser in everybody if "<" not in address.name else who_may_most:
                answer = ask(browser, "GET", address.path(ids))
                inside = answer.status_code == 200 and "login" not in address.name
                assert not inside, f"{who} {address.name}"
    for who, browser in everybody:
        assert ask(browser, "GET", "/profile/").status_code == 200, f"{who} was signed out on the way"


def test_the_table_names_nothing_that_is_gone() -> None:
    assert {f"api/v1/{name}" for name in API} == {address.name for address in OF_API}
    assert set(PAGES) == {address.name for address in OF_PAGES}


def masked(answer: HttpResponse) -> bytes:
    """Return the content without CSRF tokens and the request's number, which differ in every answer."""
    own = rb'(csrfmiddlewaretoken" value="|"X-CSRFToken": ")[^"]+|<code>[0-9a-f]{32}</code>'
    return re.sub(own, rb"", answer.content)
