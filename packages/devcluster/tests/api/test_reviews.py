"""SelfSubjectAccessReviews through the official client, as a check of rights asks them."""

import sqlite3
from contextlib import closing

import pytest
from kubernetes import client, config

from devcluster.testing.cluster import DevCluster


@pytest.fixture
def api(cluster: DevCluster) -> client.AuthorizationV1Api:
    connection = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]
    return client.AuthorizationV1Api(connection)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "subresource", "namespace"),
    [
        ("list", "", "pods", "", "default"),
        ("get", "", "pods", "log", "default"),
        ("update", "apps", "statefulsets", "finalizers", ""),
        ("create", "networking.k8s.io", "networkpolicies", "", ""),
    ],
)
def test_the_admin_may_do_everything(
    api: client.AuthorizationV1Api, verb: str, group: str, resource: str, subresource: str, namespace: str
) -> None:
    asked = client.V1ResourceAttributes(
        verb=verb, group=group, resource=resource, subresource=subresource, namespace=namespace
    )
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked)
    review = api.create_self_subject_access_review(client.V1SelfSubjectAccessReview(spec=spec))
    assert review.status is not None
    assert review.status.allowed


def test_a_review_is_answered_and_not_kept(cluster: DevCluster) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}
    code, answer = cluster.call("POST", path, body)
    assert (code, answer["status"]) == (201, {"allowed": True})
    assert cluster.call("GET", path)[0] == 405
    with closing(sqlite3.connect(cluster.state / "objects.sqlite")) as database:
        kept = {kind for (kind,) in database.execute("SELECT kind FROM objects")}
    assert kept and not [kind for kind in kept if "review" in kind.lower()]


def test_a_review_without_a_token_is_refused(cluster: DevCluster) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    code, answer = cluster.call("POST", path, {"spec": {}}, headers={"Authorization": ""})
    assert (code, answer["reason"]) == (403, "Forbidden")
