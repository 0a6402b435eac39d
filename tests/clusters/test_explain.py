"""Messages as clusters write them, and what Berth makes of each. Those marked (1.36) were seen on Kubernetes 1.36.2;
the others stand in public issue threads of Kubernetes, containerd, NVIDIA, HAMi, Calico, MetalLB and Ceph."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.causes.scheduling import total_and_reasons
from clusters.explain import BY_CODE, TABLES, UNKNOWN, audience, diagnose, explain, hint, sentence
from clusters.models import UnknownCause

NO_PREEMPTION = ". no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."

MESSAGES: list[tuple[str, str, str, dict[str, Any]]] = [
    # --- scheduling
    (
        "scheduling",
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu" + NO_PREEMPTION,  # (1.36)
        "insufficient_resource",
        {"nodes": 2, "total": 2, "resource": "nvidia.com/gpu"},
    ),
    (
        "scheduling",
        "0/2 nodes are available: 2 Insufficient nvidia.com/mig-1g.10gb" + NO_PREEMPTION,  # (1.36)
        "insufficient_resource",
        {"resource": "nvidia.com/mig-1g.10gb"},
    ),
    (
        "scheduling",
        "0/2 nodes are available: 2 Insufficient cpu" + NO_PREEMPTION,  # (1.36)
        "insufficient_resource",
        {"resource": "cpu"},
    ),
    (
        "scheduling",
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector"
        + NO_PREEMPTION,  # (1.36)
        "node_not_matching",
        {"nodes": 2, "total": 2},
    ),
    (
        "scheduling",
        '0/2 nodes are available: persistentvolumeclaim "absent" not found. not found',  # (1.36)
        "volume_claim_missing",
        {"volume": "absent", "nodes": 2},
    ),
    (
        "scheduling",
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",  # (1.36)
        "volume_unbound",
        {"total": 2},
    ),
    (
        "scheduling",
        "0/4 nodes are available: 4 pod has unbound immediate PersistentVolumeClaims. preemption: 0/4 nodes are "
        "available: 4 Preemption is not helpful for scheduling.",
        "volume_unbound",
        {"nodes": 4},
    ),
    (
        "scheduling",
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: 1 No preemption "
        "victims found for incoming pod..",
        "insufficient_resource",
        {"resource": "nvidia.com/gpu", "nodes": 1},
    ),
    (
        "scheduling",
        "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: }. preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling..",
        "node_tainted",
        {"taint": "gpu"},
    ),
    (
        "scheduling",
        "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.",
        "node_not_ready",
        {"nodes": 1},
    ),
    (
        "scheduling",
        "0/3 nodes are available: 3 node(s) had taint {node.kubernetes.io/disk-pressure: }, that the pod didn't tolerate.",
        "node_under_pressure",
        {"nodes": 3, "taint": "disk"},
    ),
    (
        "scheduling",
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Too many pods.",
        "node_pods_full",
        {"nodes": 2},
    ),
    ("scheduling", "0/3 nodes are available: 3 node(s) were unschedulable.", "node_cordoned", {"nodes": 3}),
    (
        "scheduling",
        "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
        "volume_on_other_node",
        {"nodes": 3},
    ),
    (
        "scheduling",
        "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.",
        "volume_none_to_bind",
        {},
    ),
    (
        "scheduling",
        "0/3 nodes are available: 3 node(s) did not have enough free storage.",
        "volume_no_space",
        {},
    ),
    ("scheduling", "no nodes available to schedule pods", "cluster_without_nodes", {}),
    (
        "scheduling",
        "3/8 CardInsufficientMemory, 2/8 CardInsufficientCore",
        "gpu_memory_short",
        {"nodes": 3, "total": 8},
    ),
    (
        "scheduling",
        "5 nodes failed: CardTypeMismatch (node1,node2,node3,node4,node5)",
        "gpu_type_mismatch",
        {"nodes": 5},
    ),
    ("scheduling", "2/8 CardTimeSlicingExhausted", "gpu_slots_full", {"total": 8}),
    ("scheduling", "1/8 CardNotHealth", "gpu_unhealthy", {"nodes": 1}),
    ("scheduling", "1/8 CardCordoned", "gpu_cordoned", {}),
    ("scheduling", "no available node, all node scores do not meet", "gpu_none_fits", {}),
    # --- images
    (
        "image",
        'Failed to pull image "quay.io/team/missing:1": rpc error: code = NotFound desc = failed to pull and unpack image '
        '"quay.io/team/missing:1": failed to resolve reference "quay.io/team/missing:1": quay.io/team/missing:1: not found',
        "image_not_found",
        {"image": "quay.io/team/missing:1"},
    ),
    (
        "image",
        'Failed to pull image "docker.io/none/none": failed to pull and unpack image "docker.io/none/none:latest": failed to '
        'resolve reference "docker.io/none/none:latest": pull access denied, repository does not exist or may require '
        "authorization: server message: insufficient_scope: authorization failed",
        "image_denied",
        {"image": "docker.io/none/none"},
    ),
    (
        "image",
        'failed to resolve reference "harbor.local/a/b:1": unexpected status code [manifests 1]: 401 Unauthorized',
        "image_denied",
        {"image": "harbor.local/a/b:1"},
    ),
    (
        "image",
        'Failed to pull image "10.0.0.9/project/name:v1": rpc error: code = Unknown desc = Get https://10.0.0.9/v2/: '
        "x509: certificate signed by unknown authority",
        "image_certificate_untrusted",
        {"image": "10.0.0.9/project/name:v1"},
    ),
    (
        "image",
        'Failed to pull image "busybox": rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/'
        'busybox:latest": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/'
        "library/busybox/manifests/sha256:50aa4698fa6262977cff89181b2664b99d8a56dbca847bf62f2ef04854597cf8: 429 Too Many "
        "Requests - Server message: toomanyrequests: You have reached your pull rate limit.",
        "image_rate_limited",
        {"image": "busybox"},
    ),
    (
        "image",
        'Failed to pull image "registry.lab/x:1": failed to do request: Head "https://registry.lab/v2/x/manifests/1": '
        "dial tcp: lookup registry.lab on 10.96.0.10:53: no such host",
        "image_registry_unknown",
        {"image": "registry.lab/x:1"},
    ),
    (
        "image",
        'Failed to pull image "registry.lab/x:1": failed to do request: Head "https://registry.lab/v2/x/manifests/1": '
        "dial tcp 10.1.1.1:443: i/o timeout",
        "image_registry_unreachable",
        {},
    ),
    (
        "image",
        'failed to pull and unpack image "registry.xxx.com/devops/jenkins:lts": failed to resolve reference '
        '"registry.xxx.com/devops/jenkins:lts": unexpected EOF',
        "image_registry_unreachable",
        {"image": "registry.xxx.com/devops/jenkins:lts"},
    ),
    (
        "image",
        'Failed to inspect image "ghcr.io/a/relay:0.76.2": rpc error: code = Unavailable desc = connection error: desc = '
        '"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"',
        "image_runtime_down",
        {"image": "ghcr.io/a/relay:0.76.2"},
    ),
    (
        "image",
        'Failed to pull image "a/b:1": failed to extract layer sha256:12: write /var/lib/containerd/x: no space left on device',
        "image_node_disk_full",
        {},
    ),
    (
        "image",
        'Back-off pulling image "quay.io/team/x:1"',
        "image_pull_backoff",
        {"image": "quay.io/team/x:1"},
    ),
    (
        "container",
        'InvalidImageName: Failed to apply default image tag "Bad:::name": couldn\'t parse image name "Bad:::name": '
        "invalid reference format",
        "image_name_invalid",
        {"image": "Bad:::name"},
    ),
    (
        "container",
        'ErrImageNeverPull: Container image "local/none:1" is not present with pull policy of Never',
        "image_never_pulled",
        {"image": "local/none:1"},
    ),
    # --- admission
    (
        "admission",
        'pods "p3" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=3, used: requests.nvidia.com/gpu=0, '
        "limited: requests.nvidia.com/gpu=2",  # (1.36)
        "namespace_quota_exceeded",
        {
            "requested": "requests.nvidia.com/gpu=3",
            "used": "requests.nvidia.com/gpu=0",
            "limited": "requests.nvidia.com/gpu=2",
        },
    ),
    (
        "admission",
        'Create Pod over-0 in StatefulSet over failed error: pods "over-0" is forbidden: exceeded quota: q, requested: '
        "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=0",  # (1.36)
        "namespace_quota_exceeded",
        {"quota": "q"},
    ),
    (
        "admission",
        'pods "none" is forbidden: failed quota: q: must specify requests.cpu for: main; requests.memory for: main',  # (1.36)
        "namespace_quota_needs_sizes",
        {"quota": "q"},
    ),
    (
        "admission",
        'pods "big" is forbidden: maximum cpu usage per Container is 1, but limit is 4',  # (1.36)
        "limit_range_violated",
        {"bound": "maximum cpu usage per Container is 1", "actual": "limit is 4"},
    ),
    (
        "admission",
        'pods "hp" is forbidden: violates PodSecurity "restricted:latest": restricted volume types (volume "h" uses '
        'restricted volume type "hostPath")',  # (1.36)
        "pod_security_violated",
        {"level": "restricted:latest"},
    ),
    (
        "admission",
        'Internal error occurred: failed calling webhook "validate.kyverno.svc-fail": Post '
        '"https://kyverno-svc.kyverno.svc:443/validate?timeout=10s": context deadline exceeded',
        "webhook_unreachable",
        {"webhook": "validate.kyverno.svc-fail"},
    ),
    (
        "admission",
        'admission webhook "validation.gatekeeper.sh" denied the request: [repos] image "x" is not allowed',
        "webhook_denied",
        {"webhook": "validation.gatekeeper.sh", "reason": '[repos] image "x" is not allowed'},
    ),
    (
        "admission",
        'configmaps "late" is forbidden: unable to create new content in namespace c-ns because it is being terminated',  # (1.36)
        "namespace_going_away",
        {"namespace": "c-ns"},
    ),
    (
        "admission",
        'deployments.apps is forbidden: User "system:serviceaccount:c-rbac:limited" cannot create resource "deployments" in '
        'API group "apps" in the namespace "c-rbac"',  # (1.36)
        "berth_lacks_right",
        {"verb": "create", "resource": "deployments"},
    ),
    (
        "admission",
        'Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (a) does not match the UID in record '
        "(b). The object might have been deleted and then recreated",  # (1.36)
        "object_going_away",
        {},
    ),
    (
        "admission",
        'PersistentVolumeClaim "bound" is invalid: spec.resources.requests.storage: Forbidden: field can not be less than '
        "status.capacity",  # (1.36)
        "volume_cannot_shrink",
        {},
    ),
    (
        "admission",
        'Pod "r" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu '
        "limit of 1",  # (1.36)
        "object_invalid",
        {"object": 'Pod "r"'},
    ),
    # --- volumes
    (
        "volume",
        'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and can\'t be attached to another',
        "volume_attached_elsewhere",
        {},
    ),
    (
        "volume",
        "Unable to attach or mount volumes: unmounted volumes=[home], unattached volumes=[home]: timed out waiting for the condition",
        "volume_mount_timeout",
        {},
    ),
    (
        "volume",
        'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = mount failed: exit status 32 '
        "Output: mount: /var/lib/kubelet: can't read superblock on /dev/rbd0.",
        "volume_damaged",
        {},
    ),
    (
        "volume",
        'storageclass.storage.k8s.io "none" not found',
        "volume_class_missing",
        {"storage_class": "none"},
    ),  # (1.36)
    (
        "volume",
        "waiting for first consumer to be created before binding",
        "volume_waits_for_container",
        {},
    ),  # (1.36)
    (
        "volume",
        "Waiting for a volume to be created either by the external provisioner 'csi.example.org' or manually by the system "
        "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
        "volume_provisioner_silent",
        {"provisioner": "csi.example.org"},
    ),  # (1.36)
    (
        "volume",
        'MountVolume.SetUp failed for volume "s" : secret "ws-1" not found',
        "volume_source_missing",
        {"kind": "secret"},
    ),
    ("volume", "mount: cannot remount /dev/sdb: read-only file system", "volume_read_only", {}),
    (
        "volume",
        "MountVolume.MountDevice failed: driver name cephfs.csi.ceph.com not found in the list of registered CSI drivers",
        "volume_driver_missing",
        {},
    ),
    (
        "volume",
        'failed to provision volume with StorageClass "fast": rpc error: code = ResourceExhausted desc = not enough free space',
        "volume_disk_full",
        {},
    ),
    # --- containers
    ("container", "CrashLoopBackOff: OOMKilled, exit code 137", "out_of_memory", {}),
    (
        "container",
        "CrashLoopBackOff: Error, exit code 1: no module named torch",
        "exited",
        {"exit_code": "1"},
    ),
    ("container", "CrashLoopBackOff: Error, exit code 126", "start_not_permitted", {}),
    ("container", "CrashLoopBackOff: Error, exit code 127", "start_program_missing", {}),
    ("container", "Error, exit code 137", "killed", {}),
    ("container", "Error, exit code 139", "crashed", {}),
    ("container", "Error, exit code 13", "exited", {"exit_code": "13"}),
    ("container", "Completed, exit code 0", "completed_early", {}),
    (
        "container",
        "CrashLoopBackOff: back-off 5m0s restarting failed container=main pod=ws-0_berth-demo(b1)",
        "crash_loop",
        {},
    ),
    (
        "container",
        'CreateContainerConfigError: secret "ws-1" not found',
        "settings_missing",
        {"kind": "secret", "name": "ws-1"},
    ),
    (
        "container",
        "CreateContainerConfigError: couldn't find key token in Secret berth-demo/ws-1",
        "settings_key_missing",
        {"key": "token"},
    ),
    (
        "container",
        "CreateContainerConfigError: container has runAsNonRoot and image will run as root (pod: ws-0)",
        "image_user_is_root",
        {},
    ),
    (
        "container",
        "RunContainerError: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
        'failed: unable to start container process: exec: "/bin/bash": stat /bin/bash: no such file or directory: unknown',
        "start_program_missing",
        {},
    ),
    (
        "container",
        "UnexpectedAdmissionError: Pod Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 1, Available: 0, which is unexpected",
        "gpu_not_handed_out",
        {},
    ),
    (
        "container",
        "UnexpectedAdmissionError: Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc "
        "error: code = Unknown desc = Unable to retrieve list of available devices: error creating nvml.Device 5: nvml: GPU "
        "is lost, which is unexpected",
        "gpu_lost",
        {},
    ),
    (
        "container",
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected",
        "gpu_none_healthy",
        {},
    ),
    (
        "container",
        "StartError: failed to create shim task: OCI runtime create failed: error running hook #0: exit status 1, stderr: "
        "Auto-detected mode as 'legacy' nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
        "cannot open shared object file: no such file or directory: unknown",
        "gpu_driver_library_missing",
        {},
    ),
    ("container", "Failed to initialize NVML: could not load NVML library", "gpu_driver_library_missing", {}),
    ("container", "Failed to initialize NVML: Unknown Error", "gpu_vanished", {}),
    (
        "container",
        "nvidia-container-cli: mount error: open failed: /sys/fs/cgroup/devices/devices.allow: no such file or directory",
        "gpu_cgroup_mismatch",
        {},
    ),
    (
        "container",
        "nvidia-container-cli: mount error: stat failed: /dev/nvidia-uvm: no such file or directory",
        "gpu_uvm_missing",
        {},
    ),
    (
        "container",
        "Evicted: The node was low on resource: ephemeral-storage. Container main was using 34260Ki, which exceeds its request of 0. ",
        "evicted_disk",
        {},
    ),
    (
        "container",
        "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 4Gi. ",
        "evicted_disk",
        {},
    ),
    (
        "container",
        "Evicted: The node was low on resource: memory. Threshold quantity: 100Mi",
        "evicted_memory",
        {},
    ),
    (
        "container",
        "OutOfnvidia.com/gpu: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 4, capacity: 4",
        "node_full",
        {"resource": "nvidia.com/gpu"},
    ),
    (
        "container",
        'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "3c8b": plugin '
        'type="calico" failed (add): failed to request 1 IPv4 addresses. IPAM allocated only 0',
        "network_no_address",
        {},
    ),
    (
        "container",
        'Failed create pod sandbox: rpc error: code = Unknown desc = NetworkPlugin cni failed to set up pod "x" network: stat '
        "/var/lib/calico/nodename: no such file or directory: check that the calico/node container is running",
        "network_plugin_down",
        {},
    ),
    ("container", "NodeNotReady: Node is not ready", "node_lost", {}),
    # --- services
    ("service", 'Failed to allocate IP for "berth-demo/ws-1": no available IPs', "addresses_used_up", {}),
    (
        "service",
        'Failed to allocate IP for "berth-demo/ws-1": no available IPs in pool x',
        "addresses_used_up",
        {},
    ),
    (
        "service",
        'Failed to allocate IP for "berth-demo/ws-1": ["<nil>"] is not allowed in config for service',
        "addresses_used_up",
        {},
    ),
    (
        "service",
        'Failed to allocate IP for "n/s": can\'t change sharing key for "n/s", address also in use by n/t',
        "address_conflict",
        {},
    ),
]


@pytest.mark.parametrize(
    ("source", "text", "code", "data"), MESSAGES, ids=[f"{m[2]}-{i}" for i, m in enumerate(MESSAGES)]
)
def test_a_real_message_is_recognised_with_its_data(
    source: str, text: str, code: str, data: dict[str, Any]
) -> None:
    diagnosis = diagnose(source, text)
    assert diagnosis.code == code
    assert data.items() <= diagnosis.data.items()
    assert diagnosis.known


@pytest.mark.parametrize(
    ("source", "text", "code", "data"), MESSAGES, ids=[f"{m[2]}-{i}" for i, m in enumerate(MESSAGES)]
)
def test_its_sentence_says_something_without_gaps(
    source: str, text: str, code: str, data: dict[str, Any]
) -> None:
    diagnosis = diagnose(source, text)
    told = sentence(diagnosis.code, diagnosis.data)
    assert "?" not in told
    assert "%(" not in told
    assert "%(" not in hint(diagnosis.code, diagnosis.data)


def test_several_reasons_are_counted_and_the_most_telling_one_comes_first() -> None:
    text = (
        "0/9 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable, "
        "5 node(s) didn't match Pod's node affinity/selector. preemption: 0/9 nodes are available: 9 Preemption is not "
        "helpful for scheduling."
    )
    total, reasons = total_and_reasons(text)
    assert total == 9
    assert [reason.nodes for reason in reasons] == [1, 2, 1, 5]
    diagnosis = diagnose("scheduling", text)
    assert diagnosis.code == "insufficient_resource"
    assert (diagnosis.data["nodes"], diagnosis.data["total"], diagnosis.data["resource"]) == (
        2,
        9,
        "nvidia.com/gpu",
    )
    assert sentence(diagnosis.code, diagnosis.data) == (
        "No node has enough free GPUs: 2 of 9 nodes lack it. "
        "Others: 1 node lacks CPU, 1 node is in maintenance, 5 nodes are of another kind."
    )


def test_a_comma_inside_a_taint_does_not_end_a_reason() -> None:
    __, reasons = total_and_reasons(
        "0/3 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 2 Insufficient memory."
    )
    assert [reason.text for reason in reasons] == [
        "node(s) had untolerated taint {a: b, c}",
        "Insufficient memory",
    ]


def test_facts_join_the_data() -> None:
    assert diagnose("container", "OOMKilled", container="main").data == {"container": "main"}


def test_every_cause_has_a_code_of_its_own() -> None:
    codes = [cause.code for table in TABLES.values() for cause in table]
    assert len(codes) == len(set(codes))
    assert UNKNOWN not in codes
    assert all(code.isidentifier() and code == code.lower() for code in codes)


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_code_has_a_sentence_and_a_hint_even_without_data(code: str) -> None:
    assert sentence(code, {}).strip()
    assert hint(code, {}).strip().endswith((".", "!"))
    assert audience(code) in {"you", "admin"}


def test_a_code_that_nobody_knows_any_more_is_still_told() -> None:
    assert sentence("code_of_yesterday", {}) == "The cluster says: code_of_yesterday"


FRAGMENTS = [text for __, text, __, __ in MESSAGES]


@given(
    source=st.sampled_from([*TABLES, "elsewhere"]),
    text=st.one_of(
        st.text(),
        st.lists(st.sampled_from(FRAGMENTS), max_size=3).map(" ".join),
        st.sampled_from(FRAGMENTS).flatmap(lambda t: st.integers(0, len(t)).map(lambda n: t[n:] + t[:n])),
        st.from_regex(
            r"0/[0-9]{1,30} nodes are available: ([0-9]{1,30} [\w(){}:, '/.%]{0,40},? ?){0,4}", fullmatch=True
        ),
    ),
)
def test_no_text_whatever_makes_it_fail(source: str, text: str) -> None:
    diagnosis = diagnose(source, text)
    assert sentence(diagnosis.code, diagnosis.data)
    assert hint(diagnosis.code, diagnosis.data)
    assert all(isinstance(value, str | int) for value in diagnosis.data.values())
    assert "\0" not in str(diagnosis.data)


@given(also=st.text())
def test_reasons_stored_by_another_version_do_not_make_it_fail(also: str) -> None:
    assert sentence("insufficient_resource", {"nodes": 1, "total": 2, "resource": "cpu", "also": also})


@pytest.mark.django_db
class TestUnknown:
    def test_a_known_message_is_not_counted(self) -> None:
        explain("container", "OOMKilled")
        assert not UnknownCause.objects.exists()

    def test_it_is_shown_raw_and_counted_once_per_kind(self) -> None:
        first = explain("container", 'the flux capacitor "a" of node 17 is out of plutonium')
        explain("container", 'the flux capacitor "b" of node 4 is out of plutonium')
        assert (first.code, first.known) == (UNKNOWN, False)
        assert "flux capacitor" in sentence(first.code, first.data)
        row = UnknownCause.objects.get()
        assert (row.count, row.source) == (2, "container")

    def test_the_same_words_elsewhere_are_another_kind(self) -> None:
        explain("container", "flux")
        explain("volume", "flux")
        assert UnknownCause.objects.count() == 2

    def test_what_the_database_cannot_keep_is_left_out(self) -> None:
        explain("container", "flux \0 \ud800 " + "x" * 10_000)
        assert len(UnknownCause.objects.get().text) <= 2000
