"""Authentication, authorization and the words of refusals: tokens, roles, bindings and reviews."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from devcluster.testing.kube import Kube, Obj

ACCESS = "/apis/authorization.k8s.io/v1"
IDENTITY = "/apis/authentication.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
READS_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}

As = Callable[[str], Kube]


@pytest.fixture
def bearer(kube: Kube, tmp_path: Path) -> As:
    """Function that returns the cluster as the holder of a token sees it."""

    def connect(token: str) -> Kube:
        config = yaml.safe_load(kube.kubeconfig.read_text())
        config["users"] = [{"name": "bearer", "user": {"token": token}}]
        path = tmp_path / "bearer"
        path.write_text(yaml.safe_dump(config))
        return Kube(path)

    return connect


@pytest.fixture
def account(kube: Kube, space: str) -> str:
    kube.create(f"{space}/serviceaccounts", {"metadata": {"name": "limited"}})
    return f"{space}/serviceaccounts/limited"


@pytest.fixture
def limited(kube: Kube, account: str, bearer: As) -> Kube:
    """Cluster reached with the token of an account without any rights."""
    return bearer(token_of(kube, account))


def token_of(kube: Kube, account: str, **spec: object) -> str:
    return str(kube.create(f"{account}/token", {"spec": spec})["status"]["token"])


def name_of(space: str) -> str:
    return space.rpartition("/")[2]


def in_rbac(space: str, plural: str) -> str:
    return f"{RBAC}/namespaces/{name_of(space)}/{plural}"


def grant(kube: Kube, space: str, *rules: Obj, name: str = "given") -> None:
    """Give the account `limited` these rights in its namespace, and wait until they hold."""
    kube.create(in_rbac(space, "roles"), {"metadata": {"name": name}, "rules": list(rules)})
    bind(kube, space, "Role", name)
    user = f"system:serviceaccount:{name_of(space)}:limited"
    asked = {"namespace": name_of(space), "verb": rules[0]["verbs"][0], "group": rules[0]["apiGroups"][0]}
    asked |= {"resource": rules[0]["resources"][0], "name": (rules[0].get("resourceNames") or [""])[0]}
    holds(kube, {"user": user, "resourceAttributes": asked})


def bind(kube: Kube, space: str, kind: str, role: str) -> None:
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": name_of(space)}
    body = {
        "metadata": {"name": f"to-{role}"},
        "roleRef": {"kind": kind, "name": role},
        "subjects": [subject],
    }
    kube.create(in_rbac(space, "rolebindings"), body)


def holds(kube: Kube, spec: Obj) -> None:
    soon(lambda: bool(kube.create(f"{ACCESS}/subjectaccessreviews", {"spec": spec})["status"]["allowed"]))


def soon(what: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until it holds: a real authorizer learns of roles late, and remembers a valid token for ten seconds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_token_is_whose_account_it_was_made_for(limited: Kube, space: str) -> None:
    told = limited.create(f"{IDENTITY}/selfsubjectreviews", {})["status"]["userInfo"]
    assert told["username"] == f"system:serviceaccount:{name_of(space)}:limited"
    assert told["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{name_of(space)}",
        "system:authenticated",
    ]


def test_a_token_lasts_an_hour_unless_asked_otherwise_and_ten_minutes_at_least(
    kube: Kube, account: str
) -> None:
    assert kube.create(f"{account}/token", {"spec": {}})["spec"]["expirationSeconds"] == 3600
    code, told = kube.call("POST", f"{account}/token", {"spec": {"expirationSeconds": 599}})
    assert (code, told["reason"]) == (422, "Invalid")
    assert told["details"]["causes"][0]["message"] == (
        "Invalid value: 599: may not specify a duration less than 10 minutes"
    )


def test_a_token_ends_with_its_account(kube: Kube, account: str, limited: Kube, space: str) -> None:
    assert limited.call("POST", f"{IDENTITY}/selfsubjectreviews", {})[0] == 201
    kube.call("DELETE", account)
    kube.create(f"{space}/serviceaccounts", {"metadata": {"name": "limited"}})
    soon(lambda: limited.call("POST", f"{IDENTITY}/selfsubjectreviews", {})[0] == 401)


def test_a_token_for_somebody_else_is_nobody_here(kube: Kube, account: str, bearer: As) -> None:
    vault = token_of(kube, account, audiences=["vault"])
    assert bearer(vault).call("GET", "/version")[0] == 401
    review = {"spec": {"token": vault, "audiences": ["vault"]}}
    assert kube.create(f"{IDENTITY}/tokenreviews", review)["status"]["audiences"] == ["vault"]


def test_a_token_review_tells_whose_token_it_is_and_refuses_what_is_none(
    kube: Kube, account: str, space: str
) -> None:
    good = kube.create(f"{IDENTITY}/tokenreviews", {"spec": {"token": token_of(kube, account)}})["status"]
    assert good["authenticated"]
    assert good["user"]["username"] == f"system:serviceaccount:{name_of(space)}:limited"
    bad = kube.create(f"{IDENTITY}/tokenreviews", {"spec": {"token": "none"}})["status"]
    assert bad == {"user": {}, "error": "invalid bearer token"}


def test_without_a_token_one_is_anonymous_and_may_ask_for_the_version(bearer: As, space: str) -> None:
    nobody = bearer("")
    assert nobody.call("GET", "/version")[0] == 200
    code, told = nobody.call("GET", f"{space}/pods/one/log")
    assert code == 403
    assert told["message"] == (
        'pods "one" is forbidden: User "system:anonymous" cannot get resource "pods/log" in API group ""'
        f' in the namespace "{name_of(space)}"'
    )


def test_a_role_gives_what_it_names_and_nothing_beside(kube: Kube, space: str, limited: Kube) -> None:
    grant(kube, space, READS_PODS)
    assert limited.call("GET", f"{space}/pods")[0] == 200
    for method, path, verb in (
        ("GET", f"{space}/pods?watch=1", "watch"),
        ("POST", f"{space}/pods", "create"),
        ("DELETE", f"{space}/pods", "deletecollection"),
    ):
        code, told = limited.call(method, path, {} if method == "POST" else None)
        assert (code, told["reason"]) == (403, "Forbidden")
        assert f'cannot {verb} resource "pods" in API group "" in the namespace' in told["message"]
    assert limited.call("GET", "/api/v1/pods")[1]["message"].endswith("at the cluster scope")


def test_a_role_may_be_for_one_name_alone(kube: Kube, space: str, limited: Kube) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get"]}
    grant(kube, space, rule)
    assert limited.call("GET", f"{space}/configmaps/one")[0] == 404
    assert limited.call("GET", f"{space}/configmaps/two")[0] == 403
    assert limited.call("GET", f"{space}/configmaps")[0] == 403


def test_a_subresource_is_a_right_of_its_own(kube: Kube, space: str, limited: Kube) -> None:
    grant(kube, space, {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}, name="logs")
    assert limited.call("GET", f"{space}/pods/one")[0] == 403
    asked = {"namespace": name_of(space), "verb": "get", "resource": "pods", "subresource": "log"}
    review = {"spec": {"resourceAttributes": asked}}
    assert limited.create(f"{ACCESS}/selfsubjectaccessreviews", review)["status"]["allowed"]


def test_the_viewers_role_shows_all_but_secrets(kube: Kube, space: str, limited: Kube) -> None:
    bind(kube, space, "ClusterRole", "view")
    user = f"system:serviceaccount:{name_of(space)}:limited"
    asked = {"namespace": name_of(space), "verb": "list", "resource": "pods"}
    holds(kube, {"user": user, "resourceAttributes": asked})
    assert limited.call("GET", f"/apis/apps/v1/namespaces/{name_of(space)}/statefulsets")[0] == 200
    assert limited.call("GET", f"{space}/secrets")[0] == 403


def test_a_binding_to_a_role_that_is_not_there_is_told_in_every_refusal(
    kube: Kube, space: str, limited: Kube
) -> None:
    bind(kube, space, "ClusterRole", "test-absent")
    missing = 'RBAC: clusterrole.rbac.authorization.k8s.io "test-absent" not found'
    soon(lambda: limited.call("GET", f"{space}/pods")[1]["message"].endswith(missing))


def test_nobody_grants_what_they_do_not_hold(kube: Kube, space: str, limited: Kube) -> None:
    may_write = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}
    grant(kube, space, may_write, READS_PODS)
    held = {"metadata": {"name": "held"}, "rules": [READS_PODS | {"verbs": ["list"]}]}
    assert limited.call("POST", in_rbac(space, "roles"), held)[0] == 201
    more = {"metadata": {"name": "more"}, "rules": [READS_PODS | {"verbs": ["list", "delete", "patch"]}]}
    code, told = limited.call("POST", in_rbac(space, "roles"), more)
    assert (code, told["reason"]) == (403, "Forbidden")
    assert told["message"].endswith(
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "patch"]}'
    )


def test_an_apply_of_what_is_not_there_takes_the_right_to_create(
    kube: Kube, space: str, limited: Kube
) -> None:
    grant(kube, space, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    code, told = limited.apply(f"{space}/configmaps/new", body)
    assert code == 403
    assert 'cannot create resource "configmaps"' in told["message"]
    kube.create(f"{space}/configmaps", body)
    assert limited.apply(f"{space}/configmaps/new", body)[0] == 200


@pytest.fixture
def makes_cluster_roles(kube: Kube, space: str, account: str) -> Iterator[None]:
    name = name_of(space)
    rule = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}
    kube.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": name}
    reference = {"kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    kube.create(f"{RBAC}/clusterrolebindings", binding)
    asked = {"verb": "create", "group": "rbac.authorization.k8s.io", "resource": "clusterroles"}
    holds(kube, {"user": f"system:serviceaccount:{name}:limited", "resourceAttributes": asked})
    yield
    kube.call("DELETE", f"{RBAC}/clusterrolebindings/{name}")
    kube.call("DELETE", f"{RBAC}/clusterroles/{name}")


@pytest.mark.usefixtures("makes_cluster_roles")
def test_only_who_holds_everything_puts_roles_together_by_labels(space: str, limited: Kube) -> None:
    chosen = {"matchLabels": {"example.org/part": name_of(space)}}
    body: Obj = {"metadata": {"name": f"{name_of(space)}-whole"}}
    body["aggregationRule"] = {"clusterRoleSelectors": [chosen]}
    code, told = limited.call("POST", f"{RBAC}/clusterroles", body)
    assert code == 403
    assert told["message"].endswith("must have cluster-admin privileges to use the aggregationRule")


def test_a_binding_never_changes_its_role(kube: Kube, space: str, limited: Kube) -> None:
    grant(kube, space, READS_PODS)
    path = in_rbac(space, "rolebindings/to-given")
    code, told = kube.call("PATCH", path, {"roleRef": {"name": "other"}}, "merge")
    assert code == 422
    assert told["details"]["causes"][0]["message"].endswith("cannot change roleRef")


def test_a_role_that_says_too_little_is_refused_at_each_place(kube: Kube, space: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"]}, {"verbs": ["get"], "resources": ["pods"]}]
    code, told = kube.call("POST", in_rbac(space, "roles"), {"metadata": {"name": "short"}, "rules": rules})
    assert code == 422
    assert [(c["field"], c["message"]) for c in told["details"]["causes"]] == [
        ("rules[0].verbs", "Required value: verbs must contain at least one value"),
        ("rules[1].apiGroups", "Required value: resource rules must supply at least one api group"),
    ]


def test_a_review_says_through_which_binding_one_may(kube: Kube, space: str, limited: Kube) -> None:
    grant(kube, space, READS_PODS)
    asked = {"namespace": name_of(space), "verb": "list", "resource": "pods"}
    told = limited.create(f"{ACCESS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}})
    assert told["status"] == {
        "allowed": True,
        "reason": f'RBAC: allowed by RoleBinding "to-given/{name_of(space)}" of Role "given" to ServiceAccount'
        f' "limited/{name_of(space)}"',
    }


def test_a_rules_review_lists_what_one_holds(kube: Kube, space: str, limited: Kube) -> None:
    grant(kube, space, READS_PODS)
    body = {"spec": {"namespace": name_of(space)}}
    told = limited.create(f"{ACCESS}/selfsubjectrulesreviews", body)["status"]
    assert READS_PODS in told["resourceRules"]
    assert any("/healthz" in rule["nonResourceURLs"] for rule in told["nonResourceRules"])


def test_the_admin_may_be_somebody_else_with_their_rights(kube: Kube, space: str) -> None:
    somebody = {"Impersonate-User": "jane", "Impersonate-Group": "staff"}
    told = kube.call("POST", f"{IDENTITY}/selfsubjectreviews", {}, headers=somebody)[1]["status"]["userInfo"]
    assert told == {"username": "jane", "groups": ["staff", "system:authenticated"]}
    code, refused = kube.call("GET", f"{space}/pods", headers=somebody)
    assert code == 403
    assert refused["message"].startswith('pods is forbidden: User "jane" cannot list resource "pods"')


def test_who_may_not_impersonate_is_refused_as_themselves(limited: Kube, space: str) -> None:
    code, told = limited.call("GET", f"{space}/pods", headers={"Impersonate-User": "jane"})
    assert code == 403
    assert f'User "system:serviceaccount:{name_of(space)}:limited" cannot impersonate' in told["message"]
