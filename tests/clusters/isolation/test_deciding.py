"""Running without isolation: an admin says so on a page of its own, it is audited, and every page tells it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.errors import Conflict, NotAllowed
from accounts.models import AuditEntry
from clusters.isolation.deciding import refuse_unknown, set_without_isolation
from clusters.models import Cluster
from tests.admin_forms import confirm, hidden, preview, text_of
from tests.cast import NETWORKS, Cast, make_cast
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db

LIST = "/admin/clusters/cluster/"
LINE = "data-without-isolation"


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


@pytest.fixture
def unknown(cast: Cast) -> Cluster:
    """The cast's cluster, of whose networks nothing is known."""
    Cluster.objects.update(**{key: [] for key in NETWORKS})
    return Cluster.objects.get()


def test_a_refusal_names_what_to_fill_in(unknown: Cluster) -> None:
    unknown.service_cidrs = ["10.43.0.0/16"]
    with pytest.raises(Conflict) as refused:
        refuse_unknown(unknown)
    assert refused.value.code == "isolation_unknown"
    assert "pod networks, addresses of the API server" in refused.value.message
    assert "service networks" not in refused.value.message


def test_an_admin_confirms_it_in_words_and_takes_it_back(cast: Cast, unknown: Cluster) -> None:
    admin = browser(cast.admin)
    page = preview(admin, LIST, "run_without_isolation", unknown)
    assert "pod networks" in text_of(page)
    confirm(admin, LIST, page)  # the box is not ticked
    assert not Cluster.objects.get().without_isolation
    admin.post(LIST, hidden(page) | {"confirmed": ["yes"], "ticked": ["yes"]})
    refuse_unknown(Cluster.objects.get())
    confirm(admin, LIST, preview(admin, LIST, "require_isolation", unknown))
    with pytest.raises(Conflict):
        refuse_unknown(Cluster.objects.get())
    actions = AuditEntry.objects.filter(action__endswith="_isolation").order_by("at")
    assert list(actions.values_list("action", "actor__username")) == [
        ("cluster.without_isolation", "admin"),
        ("cluster.with_isolation", "admin"),
    ]


def test_it_is_not_chosen_where_the_networks_are_known(cast: Cast) -> None:
    page = preview(browser(cast.admin), LIST, "run_without_isolation", cast.cluster)
    assert "ticked" not in text_of(page)


def test_nobody_else_decides_it(cast: Cast, unknown: Cluster) -> None:
    with pytest.raises(NotAllowed):
        set_without_isolation(cast.alice, unknown, without=True)
    assert not Cluster.objects.get().without_isolation


@pytest.mark.parametrize("without", [True, False])
def test_every_page_says_so(cast: Cast, without: bool) -> None:
    Cluster.objects.update(without_isolation=without)
    admin, alice = browser(cast.admin), browser(cast.alice)
    pages = [
        *((admin, path) for path in ("/admin/", LIST, f"{LIST}{cast.cluster.pk}/change/")),
        *((alice, path) for path in ("/", "/launch/", reverse("gpus"), reverse("profile"))),
        (Client(), reverse("sign-in")),
    ]
    for client, path in pages:
        shown = client.get(path, follow=True).content.decode()
        assert shown.count(LINE) == without, path


def test_found_networks_are_shown_and_not_changed_by_the_form(cast: Cast) -> None:
    found: dict[str, Any] = {"pods": ["10.99.0.0/24"], "nodes": ["203.0.113.9/32"]}
    Cluster.objects.update(found_networks=found)
    admin, path = browser(cast.admin), f"{LIST}{cast.cluster.pk}/change/"
    page = admin.get(path)
    assert "10.99.0.0/24" in text_of(page) and "203.0.113.9/32" in text_of(page)
    form = {
        name: value
        for name, value in page.context["adminform"].form.initial.items()
        if isinstance(value, str | int)
    }
    form |= {
        "name": "Renamed",
        "kubeconfig_path": "/some/file",
        "found_networks": "{}",
        "without_isolation": "on",
    }
    admin.post(path, form)
    cluster = Cluster.objects.get()
    assert (cluster.name, cluster.without_isolation) == ("Renamed", False)
    assert cluster.found_networks == {}  # another connection: they were another cluster's
    Cluster.objects.update(found_networks=found)
    admin.post(path, form | {"name": "Again"})
    assert (Cluster.objects.get().name, Cluster.objects.get().found_networks) == ("Again", found)
