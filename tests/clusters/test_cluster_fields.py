"""Tests of what an admin may enter for a cluster: its networks, a proxy, its Prometheus."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import User
from clusters.models import Cluster


def faults(**fields: Any) -> dict[str, list[str]]:
    cluster = Cluster(slug="lab", name="Lab", **fields)
    try:
        cluster.clean()
    except ValidationError as error:
        return error.message_dict
    return {}


def test_networks_must_be_networks_and_a_kubeconfig_needs_its_file() -> None:
    wrong = faults(pod_cidrs=["10.0.0.0/8", "ten"], denied_cidrs=["10.0.0.1/8"], connection="kubeconfig")
    assert set(wrong) == {"pod_cidrs", "denied_cidrs", "kubeconfig_path"}


@pytest.mark.parametrize("field", ["http_proxy", "prometheus_url"])
def test_good_addresses_are_accepted(field: str) -> None:
    for address in (
        "",
        "http://proxy.lab:3128",
        "https://[fd00::1]:3128/",
        "https://[::1]:9090/a/b",
        "http://10.0.0.1",
    ):
        assert not faults(**{field: address})


@pytest.mark.parametrize(
    "address",
    ["proxy.lab:3128", "socks5://proxy.lab", "http://proxy.lab:port", "http://proxy lab", "http://a:hush@b"],
)
def test_bad_proxies_are_refused(address: str) -> None:
    (text,) = faults(http_proxy=address)["http_proxy"]
    assert "hush" not in text


@pytest.mark.parametrize(
    "address",
    [
        "prometheus:9090", "ftp://prometheus", "http://", "http://prometheus:99999", "file:///etc/passwd",
        "http://prometheus/?query=up", "http://prometheus/#graph", "http://prometheus/a b", "http://[::1",
        "http://prometheus\r\nX-Injected: 1",
    ],
)  # fmt: skip
def test_bad_addresses_of_prometheus_are_refused(address: str) -> None:
    assert "prometheus_url" in faults(prometheus_url=address)


def test_a_password_has_no_place_in_an_address() -> None:
    (text,) = faults(prometheus_url="https://berth:hunter2@prometheus")["prometheus_url"]
    assert "hunter2" not in text


def test_a_token_is_never_sent_in_clear_text() -> None:
    token = {"prometheus_token_path": "/etc/berth/token"}
    assert "prometheus_token_path" in faults(prometheus_url="http://prometheus", **token)
    assert "prometheus_token_path" in faults(**token)
    assert not faults(prometheus_url="https://prometheus", **token)


@pytest.mark.django_db
def test_an_admin_enters_it_and_reads_what_is_wrong() -> None:
    admin = Client()
    admin.force_login(User.objects.create_user("admin", is_staff=True))
    form = {
        "slug": "lab", "name": "Lab", "connection": "in-cluster", "exposure": "portal", "ssh_service_port": "22",
        "home_mib": "1024", "files_uid": "1000",
    }  # fmt: skip
    answer = admin.post("/admin/clusters/cluster/add/", form | {"prometheus_url": "http://a:b@prometheus"})
    assert "Leave out the name and password" in answer.content.decode()
    admin.post("/admin/clusters/cluster/add/", form | {"prometheus_url": "http://prometheus:9090"})
    assert Cluster.objects.get().prometheus_url == "http://prometheus:9090"
