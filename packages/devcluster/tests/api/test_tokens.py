"""Tokens over time: in a pod, after a restart, and forged ones."""

import base64
import json
import stat
import time
from pathlib import Path

import pytest

from devcluster.access.tokens import InvalidToken, Tokens
from devcluster.resources import SERVICE_ACCOUNT
from devcluster.store import Store
from devcluster.testing.cluster import DevCluster, is_gone, running
from devcluster.testing.kube import Obj
from helpers.shells import NODES, PROCESSES, process_pods

IDENTITY = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def whoami(cluster: DevCluster, token: str) -> tuple[int, Obj]:
    code, told = cluster.call("POST", IDENTITY, {}, headers={"Authorization": f"Bearer {token}"})
    return code, told["status"]["userInfo"] if code == 201 else told


def claims(token: str) -> Obj:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


@process_pods
def test_a_pod_finds_a_token_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    for cluster in running(tmp_path, *PROCESSES, nodes=NODES):
        space = cluster.fresh()
        namespace = space.rpartition("/")[2]
        script = f"cat {ACCOUNT}/namespace; echo; cat {ACCOUNT}/token; echo; sleep 600"
        container = {"name": "main", "image": "local/venv:1", "command": ["sh", "-c", script]}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        made = cluster.create(f"{space}/pods", {"metadata": {"name": "p"}, "spec": spec})
        said = cluster.until(f"{space}/pods/p/log", lambda text: str(text).count("\n") == 2)
        told_namespace, token = said.split()
        assert told_namespace == namespace
        code, user = whoami(cluster, token)
        assert (code, user["username"]) == (201, f"system:serviceaccount:{namespace}:default")
        assert user["extra"]["authentication.kubernetes.io/pod-uid"] == [made["metadata"]["uid"]]
        assert user["extra"]["authentication.kubernetes.io/node-name"] == ["here"]
        cluster.call("DELETE", f"{space}/pods/p", {"gracePeriodSeconds": 0})
        cluster.until(f"{space}/pods/p", is_gone)
        assert whoami(cluster, token)[0] == 401


def test_the_signing_key_is_for_nobody_elses_eyes_and_outlives_a_restart(tmp_path: Path) -> None:
    for cluster in running(tmp_path, "--pods", "played"):
        space = cluster.fresh()
        made = cluster.create(f"{space}/serviceaccounts/default/token", {"spec": {}})["status"]["token"]
        assert stat.S_IMODE((tmp_path / "state" / "token-key.pem").stat().st_mode) == 0o600
        cluster.end()
        cluster.start()
        assert whoami(cluster, made)[0] == 201


class TestForgery:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        store = Store(tmp_path / "objects.sqlite")
        account = {"metadata": {"namespace": "default", "name": "a", "uid": "1", "creationTimestamp": ""}}
        store.put(SERVICE_ACCOUNT, account)
        return store

    def token(self, tokens: Tokens, **spec: object) -> str:
        return str(tokens.answer("default", "a", {"spec": spec}, "tests")["status"]["token"])

    def test_another_clusters_token_is_refused(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        foreign = self.token(Tokens(store, tmp_path / "other"))
        with pytest.raises(InvalidToken):
            Tokens(store, tmp_path).user(foreign)

    def test_claims_that_were_changed_are_refused(self, store: Store, tmp_path: Path) -> None:
        tokens = Tokens(store, tmp_path)
        head, _, signature = self.token(tokens).split(".")
        forged = claims(self.token(tokens)) | {"sub": "system:serviceaccount:kube-system:a"}
        body = base64.urlsafe_b64encode(json.dumps(forged).encode()).rstrip(b"=").decode()
        for token in (f"{head}.{body}.{signature}", f"{head}.{body}.", f"{body}", "..", ""):
            with pytest.raises(InvalidToken):
                tokens.user(token)

    def test_one_whose_time_is_over_is_refused(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tokens = Tokens(store, tmp_path)
        token, made_at = self.token(tokens, expirationSeconds=600), time.time()
        assert tokens.user(token).name == "system:serviceaccount:default:a"
        monkeypatch.setattr(time, "time", lambda: made_at + 601)
        with pytest.raises(InvalidToken, match="expired"):
            tokens.user(token)
