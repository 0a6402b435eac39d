"""kubectl changes objects: apply, patch, edit, scale, delete, and conflicts about a field."""

import json
from pathlib import Path

import pytest

from devcluster.testing.cluster import pod, stateful_set
from helpers.kubectl import Kubectl, claim, columns, config_map, needs_kubectl, service

pytestmark = needs_kubectl


def data(kubectl: Kubectl) -> object:
    return json.loads(kubectl("get", "configmap", "settings", "-o", "jsonpath={.data}") or "null")


def test_apply_creates_then_leaves_alone_then_changes(kubectl: Kubectl) -> None:
    assert kubectl.apply(config_map(a="1")) == "configmap/settings created\n"
    assert kubectl.apply(config_map(a="1")) == "configmap/settings unchanged\n"
    assert kubectl.apply(config_map(b="2")) == "configmap/settings configured\n"
    assert data(kubectl) == {"b": "2"}


def test_apply_of_defaulted_kinds_again_is_unchanged(kubectl: Kubectl) -> None:
    objects = (stateful_set("ws"), service(), claim())
    assert kubectl.apply(*objects).count("created") == 3
    assert kubectl.apply(*objects).count("unchanged") == 3


def test_apply_prunes_what_a_manifest_no_longer_has(kubectl: Kubectl) -> None:
    labelled = [m | {"metadata": m["metadata"] | {"labels": {"set": "x"}}} for m in
                (config_map("stays"), config_map("goes"))]  # fmt: skip
    kubectl.apply(*labelled)
    prune = ("--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap")
    assert "configmap/goes pruned" in kubectl.apply(labelled[0], more=prune)
    assert kubectl("get", "configmap", "-l", "set=x", "-o", "name") == "configmap/stays\n"


def test_server_side_apply_refuses_a_conflict_until_it_is_forced(kubectl: Kubectl) -> None:
    ours = ("--server-side", "--field-manager=ours")
    theirs = ("--server-side", "--field-manager=theirs")
    assert kubectl.apply(config_map(a="1"), more=ours) == "configmap/settings serverside-applied\n"
    manifest = json.dumps(config_map(a="2"))
    told = kubectl.fails("apply", "-f", "-", *theirs, given=manifest)
    assert 'Apply failed with 1 conflict: conflict with "ours": .data.a' in told
    assert data(kubectl) == {"a": "1"}
    kubectl("apply", "-f", "-", *theirs, "--force-conflicts", given=manifest)
    assert data(kubectl) == {"a": "2"}


def test_apply_moves_from_client_side_to_server_side(kubectl: Kubectl) -> None:
    kubectl.apply(config_map(a="1", b="2"))
    kubectl.apply(config_map(a="1"), more=("--server-side",))
    assert data(kubectl) == {"a": "1"}


def test_diff_shows_what_apply_would_change(kubectl: Kubectl) -> None:
    kubectl.apply(config_map(a="1"))
    assert kubectl("diff", "-f", "-", given=json.dumps(config_map(a="1"))) == ""
    done = kubectl.run("diff", "-f", "-", given=json.dumps(config_map(a="2")))
    assert done.returncode == 1
    changed = [line for line in done.stdout.splitlines() if line[:1] in "+-" and "a:" in line]
    assert changed == ['-  a: "1"', '+  a: "2"']
    assert data(kubectl) == {"a": "1"}


def test_a_dry_run_stores_nothing(kubectl: Kubectl) -> None:
    manifest = json.dumps(config_map(a="1"))
    told = kubectl("create", "-f", "-", "--dry-run=server", given=manifest)
    assert told == "configmap/settings created (server dry run)\n"
    assert "created (dry run)" in kubectl("create", "-f", "-", "--dry-run=client", given=manifest)
    kubectl.fails("get", "configmap", "settings")
    made = kubectl("create", "-f", "-", "--dry-run=server", "-o", "jsonpath={.metadata.uid}", given=manifest)
    assert len(made) == 36


def test_create_refuses_a_second_and_what_is_wrong(kubectl: Kubectl) -> None:
    manifest = json.dumps(config_map(a="1"))
    kubectl("create", "-f", "-", given=manifest)
    told = kubectl.fails("create", "-f", "-", given=manifest)
    assert '(AlreadyExists): error when creating "STDIN": configmaps "settings" already exists' in told
    misspelt = stateful_set("ws")
    misspelt["spec"]["replica"] = 2
    told = kubectl.fails("create", "-f", "-", given=json.dumps(misspelt))
    assert 'strict decoding error: unknown field "spec.replica"' in told
    nameless = stateful_set("Not_A_Name")
    assert "a lowercase RFC 1123" in kubectl.fails("create", "-f", "-", given=json.dumps(nameless))


def test_replace_needs_what_it_replaces(kubectl: Kubectl) -> None:
    manifest = json.dumps(config_map(a="1"))
    assert "(NotFound)" in kubectl.fails("replace", "-f", "-", given=manifest)
    kubectl.apply(config_map(a="1", b="2"))
    kubectl("replace", "-f", "-", given=manifest)
    assert data(kubectl) == {"a": "1"}


@pytest.mark.parametrize(
    ("kind", "patch", "left"),
    [
        ("strategic", '{"data":{"b":"2"}}', {"a": "1", "b": "2"}),
        ("merge", '{"data":{"a":null,"b":"2"}}', {"b": "2"}),
        ("json", '[{"op":"replace","path":"/data/a","value":"3"}]', {"a": "3"}),
    ],
)
def test_patch_of_each_kind(kubectl: Kubectl, kind: str, patch: str, left: object) -> None:
    kubectl.apply(config_map(a="1"))
    assert kubectl("patch", "configmap", "settings", f"--type={kind}", "-p", patch) == (
        "configmap/settings patched\n"
    )
    assert data(kubectl) == left
    again = kubectl("patch", "configmap", "settings", f"--type={kind}", "-p", patch)
    assert again == "configmap/settings patched (no change)\n"


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl.apply(config_map(a="1"))
    assert kubectl("label", "configmap", "settings", "team=a") == "configmap/settings labeled\n"
    told = kubectl.fails("label", "configmap", "settings", "team=b")
    assert "'team' already has a value (a), and --overwrite is false" in told
    kubectl("label", "configmap", "settings", "team=b", "--overwrite")
    assert kubectl("get", "configmap", "-l", "team=b", "-o", "name") == "configmap/settings\n"
    assert kubectl("label", "configmap", "settings", "team-") == "configmap/settings unlabeled\n"
    assert kubectl("annotate", "configmap", "settings", "why=so") == "configmap/settings annotated\n"
    assert kubectl("get", "configmap", "settings", "-o", "jsonpath={.metadata.annotations.why}") == "so"
    assert "a valid label must be" in kubectl.fails("label", "configmap", "settings", "team=no spaces please")


def test_edit_writes_what_the_editor_leaves(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.apply(config_map(a="1"))
    editor = tmp_path / "editor"
    editor.write_text("""#!/bin/sh\nsed -i 's/  a: "1"/  a: "edited"/' "$1"\n""")
    editor.chmod(0o755)
    told = kubectl("edit", "configmap", "settings", KUBE_EDITOR=str(editor))
    assert told == "configmap/settings edited\n"
    assert data(kubectl) == {"a": "edited"}
    told = kubectl.run("edit", "configmap", "settings", KUBE_EDITOR="true").stderr
    assert "Edit cancelled, no changes made." in told


def test_scale_up_and_down(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws"))
    assert kubectl("scale", "statefulset", "ws", "--replicas=2") == "statefulset.apps/ws scaled\n"
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "statefulset/ws", "--timeout=30s")
    told = kubectl.fails("scale", "statefulset", "ws", "--current-replicas=7", "--replicas=1")
    assert "Expected replicas to be 7, was 2" in told
    kubectl("scale", "statefulset", "ws", "--replicas=0")
    kubectl("wait", "--for=delete", "pod/ws-0", "pod/ws-1", "--timeout=30s")


def test_set_image_and_run(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws", replicas=0))
    assert kubectl("set", "image", "sts/ws", "main=local/other:2") == "statefulset.apps/ws image updated\n"
    assert kubectl("run", "one", "--image=local/none:1", "--labels=a=b") == "pod/one created\n"
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=30s")
    assert kubectl("get", "pod", "-l", "a=b", "-o", "name") == "pod/one\n"


def test_delete_waits_until_it_is_gone(kubectl: Kubectl) -> None:
    kubectl.apply({"apiVersion": "v1", "kind": "Pod", **pod("p")})
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")
    assert kubectl("delete", "pod", "p", "--timeout=30s") == 'pod "p" deleted\n'
    assert "(NotFound)" in kubectl.fails("get", "pod", "p")
    assert "(NotFound)" in kubectl.fails("delete", "pod", "p")
    assert kubectl("delete", "pod", "p", "--ignore-not-found") == ""


def test_delete_by_force_does_not_wait_for_the_kubelet(kubectl: Kubectl) -> None:
    body = pod("p", terminationGracePeriodSeconds=30)
    kubectl.apply({"apiVersion": "v1", "kind": "Pod", **body})
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")
    told = kubectl.run("delete", "pod", "p", "--grace-period=0", "--force")
    assert told.stdout == 'pod "p" force deleted\n'
    assert "Immediate deletion does not wait for confirmation" in told.stderr
    kubectl.fails("get", "pod", "p")


def test_delete_without_waiting_shows_terminating(kubectl: Kubectl) -> None:
    held = {"apiVersion": "v1", "kind": "Pod", **pod("p")}
    held["metadata"]["finalizers"] = ["example.org/hold"]
    kubectl.apply(held)
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")
    assert kubectl("delete", "pod", "p", "--wait=false") == 'pod "p" deleted\n'
    assert columns(kubectl("get", "pod", "p"))[1][2] in ("Terminating", "Completed")
    kubectl("patch", "pod", "p", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    kubectl("wait", "--for=delete", "pod/p", "--timeout=30s")


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws"), config_map(a="1"))
    kubectl("delete", "namespace", kubectl.namespace, "--timeout=60s")
    assert "(NotFound)" in kubectl.fails("get", "namespace", kubectl.namespace)
