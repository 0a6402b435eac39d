"""SelfSubjectAccessReviews through the official client, as a check of rights asks them."""

import sqlite3
from contextlib import closing

from devcluster.testing.cluster import DevCluster


def test_a_review_is_answered_and_not_kept(cluster: DevCluster) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}
    code, answer = cluster.call("POST", path, body)
    assert (code, answer["status"]) == (201, {"allowed": True})
    assert cluster.call("GET", path)[0] == 405
    with closing(sqlite3.connect(cluster.state / "objects.sqlite")) as database:
        kept = {kind for (kind,) in database.execute("SELECT kind FROM objects")}
    assert kept and not [kind for kind in kept if "review" in kind.lower()]
