"""kubectl with identities: who am I, may I, impersonation, accounts, roles and tokens."""

import pytest

from devcluster.testing.cluster import DevCluster
from helpers.kubectl import Kubectl, needs_kubectl

pytestmark = needs_kubectl


@pytest.fixture
def reader(kubectl: Kubectl) -> str:
    """Full name of an account that may read pods."""
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "role", "reads-pods", "--verb=get,list", "--resource=pods")
    account = f"--serviceaccount={kubectl.namespace}:reader"
    kubectl("create", "rolebinding", "reader-reads", "--role=reads-pods", account)
    return f"system:serviceaccount:{kubectl.namespace}:reader"


def test_the_admin_may_do_everything(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"
    assert "admin" in kubectl("auth", "whoami")


def test_can_i_says_no_and_fails(kubectl: Kubectl, reader: str) -> None:
    assert kubectl("auth", "can-i", "list", "pods", f"--as={reader}") == "yes\n"
    done = kubectl.run("auth", "can-i", "delete", "pods", f"--as={reader}")
    assert (done.returncode, done.stdout) == (1, "no\n")


def test_can_i_lists_what_one_holds(kubectl: Kubectl, reader: str) -> None:
    rows = [line.split() for line in kubectl("auth", "can-i", "--list", f"--as={reader}").splitlines()]
    assert ["pods", "[]", "[]", "[get", "list]"] in rows
    assert ["[/healthz]", "[]", "[get]"] in rows


def test_a_refusal_names_the_verb_the_resource_and_the_place(kubectl: Kubectl, reader: str) -> None:
    told = kubectl.fails("get", "secrets", f"--as={reader}")
    assert told == (
        f'Error from server (Forbidden): secrets is forbidden: User "{reader}" cannot list resource "secrets"'
        f' in API group "" in the namespace "{kubectl.namespace}"\n'
    )


def test_a_token_that_kubectl_makes_is_good(kubectl: Kubectl, reader: str, cluster: DevCluster) -> None:
    token = kubectl("create", "token", "reader", "--duration=1h").strip()
    headers = {"Authorization": f"Bearer {token}"}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods"
    assert cluster.call("GET", path, headers=headers)[0] == 200
    assert cluster.call("GET", "/api/v1/nodes", headers=headers)[0] == 403


def test_describe_shows_a_role_that_is_put_together_of_others(kubectl: Kubectl) -> None:
    told = kubectl("describe", "clusterrole", "view")
    assert ["pods/log", "[]", "[]", "[get", "list", "watch]"] in [line.split() for line in told.splitlines()]
