"""PVCs and volumes: which volume a PVC gets or why none, how it grows, what protects it, what is left of it."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj

VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
NFS = {"server": "nowhere", "path": "/"}
Make = Callable[..., str]


@pytest.fixture
def kind() -> str:
    """Class name of the test's own, so that its static volumes are for its PVCs alone. No such class exists."""
    return f"static-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def volume(kube: Kube, kind: str) -> Iterator[Make]:
    """Function that makes a static volume and returns its name."""
    made: list[str] = []

    def make(size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> str:
        name = f"{kind}-{len(made)}"
        labels = spec.pop("labels", {})
        wanted: Obj = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": kind}
        wanted |= {"hostPath": {"path": f"/tmp/{name}"}, **spec}
        kube.create(VOLUMES, {"metadata": {"name": name, "labels": labels}, "spec": wanted})
        made.append(name)
        kube.until(f"{VOLUMES}/{name}", lambda o: o["status"]["phase"] in ("Available", "Bound"))
        return name

    yield make
    for name in made:
        kube.call("DELETE", f"{VOLUMES}/{name}")
        kube.call("PATCH", f"{VOLUMES}/{name}", {"metadata": {"finalizers": None}}, "merge")


@pytest.fixture
def storage_class(kube: Kube, kind: str) -> Iterator[Make]:
    """Function that makes a storage class and returns its name."""

    def make(**fields: Any) -> str:
        kube.create(CLASSES, {"metadata": {"name": kind}, "provisioner": "nobody.example.com"} | fields)
        return kind

    yield make
    kube.call("DELETE", f"{CLASSES}/{kind}")


def claim(kube: Kube, space: str, name: str, storage_class: str, size: str = "1Gi", **spec: Any) -> str:
    """Create a PVC and return its path."""
    wanted: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    wanted |= {"storageClassName": storage_class, **spec}
    kube.create(f"{space}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": wanted})
    return f"{space}/persistentvolumeclaims/{name}"


def user(kube: Kube, space: str, image: str, *claims: str) -> str:
    """Create a pod that mounts PVCs, and return its path."""
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    mounts = [{"name": c, "mountPath": f"/{c}"} for c in claims]
    container = {"name": "main", "image": image, "volumeMounts": mounts}
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1}
    kube.create(f"{space}/pods", {"metadata": {"name": "user"}, "spec": spec})
    return f"{space}/pods/user"


def bound(kube: Kube, path: str) -> Obj:
    return dict(kube.until(path, lambda o: o.get("status", {}).get("phase") == "Bound", 30))


def told(kube: Kube, space: str, reason: str, name: str) -> Obj:
    """Wait for the first event with this reason about the object, and return it."""
    query = f"{space}/events?fieldSelector=involvedObject.name%3D{name}%2Creason%3D{reason}"
    return dict(kube.until(query, lambda o: o["items"], 30)["items"][0])


def gone(found: Any) -> bool:
    return bool(found.get("code") == 404)


# --- the volume that a PVC gets


def test_a_class_that_binds_at_once_gives_a_claim_its_volume(kube: Kube, space: str) -> None:
    found = bound(kube, claim(kube, space, "home", "net-shared"))
    assert found["status"]["capacity"] == {"storage": "1Gi"}
    assert found["status"]["accessModes"] == ["ReadWriteOnce"]
    assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert found["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    made = kube.until(f"{VOLUMES}/{found['spec']['volumeName']}", lambda o: o["status"]["phase"] == "Bound")
    assert made["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
    assert made["spec"]["claimRef"]["kind"] == "PersistentVolumeClaim"
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"


def test_a_class_that_binds_on_first_use_says_that_it_waits(kube: Kube, space: str) -> None:
    path = claim(kube, space, "disk", "local-fast")
    event = told(kube, space, "WaitForFirstConsumer", "disk")
    assert event["message"] == "waiting for first consumer to be created before binding"
    assert (event["type"], event["source"]["component"]) == ("Normal", "persistentvolume-controller")
    assert kube.get(path)["status"] == {"phase": "Pending"}


def test_first_use_makes_the_volume_on_the_pods_node(kube: Kube, space: str, image: str) -> None:
    path = claim(kube, space, "disk", "local-fast")
    pod = user(kube, space, image, "disk")
    found = bound(kube, path)
    node = kube.until(pod, lambda o: o["spec"].get("nodeName"), 30)["spec"]["nodeName"]
    assert found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
    made = kube.get(f"{VOLUMES}/{found['spec']['volumeName']}")
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == [node]


def test_a_claim_gets_the_smallest_volume_that_fits(kube: Kube, space: str, kind: str, volume: Make) -> None:
    volume("1Gi")
    volume("8Gi")
    fitting = volume("3Gi")
    found = bound(kube, claim(kube, space, "c", kind, "2Gi"))
    assert found["spec"]["volumeName"] == fitting
    assert found["status"]["capacity"] == {"storage": "3Gi"}


def test_a_claim_gets_only_what_its_selector_names(kube: Kube, space: str, kind: str, volume: Make) -> None:
    volume("1Gi", labels={"tier": "slow"})
    fast = volume("2Gi", labels={"tier": "fast"})
    found = bound(kube, claim(kube, space, "c", kind, selector={"matchLabels": {"tier": "fast"}}))
    assert found["spec"]["volumeName"] == fast


def test_a_claim_gets_a_volume_that_has_all_its_access_modes(
    kube: Kube, space: str, kind: str, volume: Make
) -> None:
    volume("1Gi")
    both = volume("2Gi", ("ReadWriteOnce", "ReadWriteMany"))
    found = bound(kube, claim(kube, space, "c", kind, accessModes=["ReadWriteMany"]))
    assert found["spec"]["volumeName"] == both
    assert found["status"]["accessModes"] == ["ReadWriteOnce", "ReadWriteMany"]


def test_a_volume_with_fewer_access_modes_is_nearer(kube: Kube, space: str, kind: str, volume: Make) -> None:
    volume("1Gi", ("ReadWriteOnce", "ReadWriteMany"))
    plain = volume("2Gi")
    assert bound(kube, claim(kube, space, "c", kind))["spec"]["volumeName"] == plain


def test_a_reserved_volume_waits_for_its_claim(kube: Kube, space: str, kind: str, volume: Make) -> None:
    namespace = space.rsplit("/", 1)[1]
    reserved = volume("1Gi", claimRef={"namespace": namespace, "name": "chosen"})
    other = volume("2Gi")
    assert bound(kube, claim(kube, space, "other", kind))["spec"]["volumeName"] == other
    assert bound(kube, claim(kube, space, "chosen", kind))["spec"]["volumeName"] == reserved
    kept = kube.get(f"{VOLUMES}/{reserved}")
    assert "pv.kubernetes.io/bound-by-controller" not in kept["metadata"].get("annotations", {})


def test_a_claim_may_name_its_volume(kube: Kube, space: str, kind: str, volume: Make) -> None:
    volume("1Gi")
    named = volume("8Gi")
    found = bound(kube, claim(kube, space, "c", kind, volumeName=named))
    assert found["spec"]["volumeName"] == named
    assert "pv.kubernetes.io/bound-by-controller" not in found["metadata"]["annotations"]
    annotations = kube.get(f"{VOLUMES}/{named}")["metadata"]["annotations"]
    assert annotations["pv.kubernetes.io/bound-by-controller"] == "yes"


def test_a_named_volume_that_is_too_small_is_refused_in_words(
    kube: Kube, space: str, kind: str, volume: Make
) -> None:
    small = volume("1Gi")
    path = claim(kube, space, "c", kind, "2Gi", volumeName=small)
    event = told(kube, space, "VolumeMismatch", "c")
    assert event["message"] == f'Cannot bind to requested volume "{small}": requested PV is too small'
    assert event["type"] == "Warning"
    assert kube.get(path)["status"] == {"phase": "Pending"}


def test_a_named_volume_of_another_claim_is_refused_in_words(
    kube: Kube, space: str, kind: str, volume: Make
) -> None:
    only = volume()
    bound(kube, claim(kube, space, "first", kind))
    claim(kube, space, "second", kind, volumeName=only)
    event = told(kube, space, "FailedBinding", "second")
    assert event["message"] == f'volume "{only}" already bound to a different claim.'
    assert event["type"] == "Warning"


def test_a_claim_without_class_says_that_there_is_no_volume(kube: Kube, space: str) -> None:
    claim(kube, space, "c", "", selector={"matchLabels": {"no": "such"}})
    event = told(kube, space, "FailedBinding", "c")
    assert event["message"] == "no persistent volumes available for this claim and no storage class is set"
    assert event["type"] == "Normal"


def test_a_class_that_does_not_exist_is_named(kube: Kube, space: str, kind: str) -> None:
    claim(kube, space, "c", kind)
    event = told(kube, space, "ProvisioningFailed", "c")
    assert event["message"] == f'storageclass.storage.k8s.io "{kind}" not found'
    assert event["type"] == "Warning"


def test_a_provisioner_that_nobody_runs_is_waited_for(kube: Kube, space: str, storage_class: Make) -> None:
    path = claim(kube, space, "c", storage_class())
    event = told(kube, space, "ExternalProvisioning", "c")
    assert event["message"] == (
        "Waiting for a volume to be created either by the external provisioner 'nobody.example.com' or manually by"
        " the system administrator. If volume creation is delayed, please verify that the provisioner is running"
        " and correctly registered."
    )
    annotations = kube.get(path)["metadata"]["annotations"]
    assert annotations["volume.kubernetes.io/storage-provisioner"] == "nobody.example.com"


def test_a_volume_made_by_hand_fills_a_waiting_claim(kube: Kube, space: str, kind: str, volume: Make) -> None:
    path = claim(kube, space, "c", kind)
    told(kube, space, "ProvisioningFailed", "c")
    made = volume()
    assert bound(kube, path)["spec"]["volumeName"] == made


# --- a class whose volumes an admin makes, on certain nodes


def by_hand(storage_class: Make) -> str:
    return storage_class(provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer")


def on(node: str) -> Obj:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}


def test_a_pod_goes_where_a_volume_for_its_claim_is(
    kube: Kube, space: str, image: str, storage_class: Make, volume: Make
) -> None:
    name = by_hand(storage_class)
    nodes = [n["metadata"]["name"] for n in kube.get("/api/v1/nodes")["items"]]
    volume("1Gi", nodeAffinity=on("nowhere"))
    there = volume("2Gi", nodeAffinity=on(nodes[-1]))
    path = claim(kube, space, "c", name)
    told(kube, space, "WaitForFirstConsumer", "c")
    pod = user(kube, space, image, "c")
    assert bound(kube, path)["spec"]["volumeName"] == there
    found = kube.until(pod, lambda o: bool(o["spec"].get("nodeName")), 30)
    assert found["spec"]["nodeName"] == nodes[-1]
    annotations = kube.get(f"{VOLUMES}/{there}")["metadata"]["annotations"]
    assert annotations["pv.kubernetes.io/bound-by-controller"] == "yes"


def test_a_pod_whose_claim_finds_no_volume_anywhere_waits_in_words(
    kube: Kube, space: str, image: str, storage_class: Make
) -> None:
    claim(kube, space, "c", by_hand(storage_class))
    user(kube, space, image, "c")
    event = told(kube, space, "FailedScheduling", "user")
    nodes = len(kube.get("/api/v1/nodes")["items"])
    assert event["message"].startswith(f"0/{nodes} nodes are available: ")
    assert "node(s) didn't find available persistent volumes to bind" in event["message"]


# --- growth


def test_a_claim_grows_with_its_volume(kube: Kube, space: str) -> None:
    path = claim(kube, space, "home", "net-shared")
    name = bound(kube, path)["spec"]["volumeName"]
    code, _ = kube.call("PATCH", path, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, "merge")
    assert code == 200
    kube.until(path, lambda o: o["status"]["capacity"] == {"storage": "2Gi"})
    assert kube.get(f"{VOLUMES}/{name}")["spec"]["capacity"] == {"storage": "2Gi"}


def test_a_grown_claim_does_not_shrink(kube: Kube, space: str) -> None:
    path = claim(kube, space, "home", "net-shared", "2Gi")
    bound(kube, path)
    code, refused = kube.call(
        "PATCH", path, {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}, "merge"
    )
    assert (code, refused["reason"]) == (422, "Invalid")
    assert refused["details"]["causes"] == [
        {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: field can not be less than status.capacity",
            "field": "spec.resources.requests.storage",
        }
    ]


def test_a_class_that_does_not_grow_refuses(kube: Kube, space: str, kind: str, volume: Make) -> None:
    volume("4Gi")
    path = claim(kube, space, "c", kind)
    bound(kube, path)
    code, refused = kube.call(
        "PATCH", path, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, "merge"
    )
    assert (code, refused["reason"]) == (403, "Forbidden")
    assert refused["message"].endswith(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support"
        " resize"
    )


# --- protection, and what is left


def test_a_claim_in_use_goes_only_after_its_pod(kube: Kube, space: str, image: str) -> None:
    path = claim(kube, space, "home", "net-shared")
    pod = user(kube, space, image, "home")
    kube.until(pod, lambda o: o["spec"].get("nodeName"), 30)
    kube.call("DELETE", path)
    marked = kube.get(path)
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert marked["status"]["phase"] == "Bound"
    kube.call("DELETE", pod, {"gracePeriodSeconds": 0})
    kube.until(path, gone, 30)


def test_a_claim_that_only_a_waiting_pod_names_goes_at_once(kube: Kube, space: str, image: str) -> None:
    path = claim(kube, space, "disk", "local-fast")
    container = {"name": "main", "image": image}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]
    spec = {"containers": [container], "volumes": volumes, "nodeSelector": {"no": "such"}}
    kube.create(f"{space}/pods", {"metadata": {"name": "waits"}, "spec": spec})
    kube.call("DELETE", path)
    kube.until(path, gone, 30)


def test_a_bound_volume_goes_only_after_its_claim(kube: Kube, space: str, kind: str, volume: Make) -> None:
    name = volume()
    path = claim(kube, space, "c", kind)
    bound(kube, path)
    kube.call("DELETE", f"{VOLUMES}/{name}")
    marked = kube.get(f"{VOLUMES}/{name}")
    assert "kubernetes.io/pv-protection" in marked["metadata"]["finalizers"]
    assert (marked["status"]["phase"], kube.get(path)["status"]["phase"]) == ("Bound", "Bound")
    kube.call("DELETE", path)
    kube.until(f"{VOLUMES}/{name}", gone, 30)


def test_a_retained_volume_is_released_and_can_be_given_again(
    kube: Kube, space: str, kind: str, volume: Make
) -> None:
    name = volume(persistentVolumeReclaimPolicy="Retain")
    first = claim(kube, space, "first", kind)
    bound(kube, first)
    kube.call("DELETE", first)
    left = kube.until(f"{VOLUMES}/{name}", lambda o: o["status"]["phase"] == "Released", 30)
    assert left["spec"]["claimRef"]["name"] == "first"
    claim(kube, space, "second", kind)
    told(kube, space, "ProvisioningFailed", "second")  # nobody gets a released volume
    kube.call("PATCH", f"{VOLUMES}/{name}", {"spec": {"claimRef": None}}, "merge")
    assert bound(kube, f"{space}/persistentvolumeclaims/second")["spec"]["volumeName"] == name


def test_a_claim_whose_volume_is_taken_away_is_lost(kube: Kube, space: str, kind: str, volume: Make) -> None:
    name = volume()
    path = claim(kube, space, "c", kind)
    bound(kube, path)
    kube.call("DELETE", f"{VOLUMES}/{name}")
    kube.call("PATCH", f"{VOLUMES}/{name}", {"metadata": {"finalizers": None}}, "merge")
    lost = kube.until(path, lambda o: o["status"]["phase"] == "Lost", 30)
    assert lost["status"] == {"phase": "Lost"}
    event = told(kube, space, "ClaimLost", "c")
    assert event["message"] == "Bound claim has lost its PersistentVolume. Data on the volume is lost!"


def test_the_volume_of_a_deleted_claim_is_let_go_by_its_policy(kube: Kube, space: str) -> None:
    path = claim(kube, space, "home", "net-shared")
    name = bound(kube, path)["spec"]["volumeName"]
    kube.call("DELETE", path)
    kube.until(f"{VOLUMES}/{name}", lambda o: gone(o) or o["status"]["phase"] in ("Released", "Failed"), 30)
    kube.call("DELETE", f"{VOLUMES}/{name}")


# --- invalid objects


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {},
            (
                "[spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: Unsupported"
                ' value: null: supported values: "storage", spec: Required value: must specify a volume type]'
            ),
        ),
        (
            {"capacity": {"storage": "0"}, "accessModes": ["Any"], "hostPath": {"path": "/x"}, "nfs": NFS},
            (
                '[spec.accessModes: Unsupported value: "Any": supported values: "ReadOnlyMany", "ReadWriteMany",'
                ' "ReadWriteOnce", "ReadWriteOncePod", spec.capacity[storage]: Invalid value: "0": must be greater than'
                " zero, spec.nfs: Forbidden: may not specify more than 1 volume type]"
            ),
        ),
        (
            {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "x"}},
            "spec.csi.volumeHandle: Required value",
        ),
    ],
)
def test_a_volume_that_makes_no_sense_is_refused(kube: Kube, spec: Obj, why: str) -> None:
    code, refused = kube.call("POST", VOLUMES, {"metadata": {"name": "bad"}, "spec": spec}, dryRun="All")
    assert (code, refused["message"]) == (422, f'PersistentVolume "bad" is invalid: {why}')


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"volumeMode": "Any"},
            'spec.volumeMode: Unsupported value: "Any": supported values: "Block", "Filesystem"',
        ),
        (
            {"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]},
            "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        (
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": ""}},
            "[spec.dataSource.name: Required value, spec.dataSourceRef.name: Required value]",
        ),
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(kube: Kube, space: str, spec: Obj, why: str) -> None:
    usual: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "bad"}, "spec": usual | spec}
    code, refused = kube.call("POST", f"{space}/persistentvolumeclaims", body, dryRun="All")
    assert (code, refused["message"]) == (422, f'PersistentVolumeClaim "bad" is invalid: {why}')


def test_the_source_of_a_claim_is_told_in_both_its_members(kube: Kube, space: str) -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "other"}
    made = kube.get(claim(kube, space, "c", "", dataSource=source))
    assert made["spec"]["dataSource"] == made["spec"]["dataSourceRef"] == {"apiGroup": None, **source}
