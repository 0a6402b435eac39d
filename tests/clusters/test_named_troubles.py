"""Problems that Berth was made to explain, each with a text that clusters print for it.

They come from articles by people who ran GPU clusters for others (A: a container platform, B: device plugins, D:
training at a cloud provider), and from messages of scheduler, kubelet, storage, HAMi, MetalLB and NVIDIA's tools.
"""

from __future__ import annotations

import pytest

from clusters.explain import diagnose

CALICO = (
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "3c8b": plugin '
    'type="calico" failed (add): failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses'
)
RUNC = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "

ARTICLES = {
    # --- A
    "node not ready": ("node", "NodeNotReady: Node gpu-1 status is now: NodeNotReady", "node_lost"),
    "its kubelet is silent": ("node", "NodeStatusUnknown: Kubelet stopped posting node status.", "node_lost"),
    "no node is ready": (
        "scheduling",
        "0/3 nodes are available: 3 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
        "node_not_ready",
    ),
    "no ephemeral storage left to ask for": (
        "scheduling",
        "0/2 nodes are available: 2 Insufficient ephemeral-storage.",
        "insufficient_resource",
    ),
    "more ephemeral storage than asked for": (
        "container",
        "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 4Gi. ",
        "temporary_disk_full",
    ),
    "the network plugin has no address": ("container", CALICO, "network_plugin_down"),
    "disk pressure, to who runs there": (
        "container",
        "Evicted: The node was low on resource: ephemeral-storage. Threshold quantity: 10%",
        "evicted",
    ),
    "disk pressure, of a node": (
        "node",
        "Node gpu-1 status is now: NodeHasDiskPressure",
        "node_short_of_disk",
    ),
    "disk pressure, to who waits": (
        "scheduling",
        "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.",
        "node_short_of_disk",
    ),
    "memory pressure, of a node": (
        "node",
        "KubeletHasInsufficientMemory: kubelet has insufficient memory available",
        "node_short_of_memory",
    ),
    "an osd flaps": ("volume", "HEALTH_WARN: osd.3 is down; 1 osds down", "storage_unwell"),
    "an osd flaps, in a node's log": ("node", "libceph: osd3 down", "storage_unwell"),
    "a slow metadata server": (
        "volume",
        "mds.cephfs-a(mds.0): 12 slow metadata IOs: MDS_SLOW_METADATA_IO",
        "storage_unwell",
    ),
    "a metadata server that answers nobody": (
        "volume",
        "mount error: no mds (Metadata Server) is up. The cluster might be laggy, or you may not be authorized",
        "storage_unwell",
    ),
    "can't read superblock": (
        "volume",
        "MountVolume.MountDevice failed: mount: /var/lib/kubelet: can't read superblock on /dev/rbd0.",
        "volume_damaged",
    ),
    "a mount that fails past a number of hosts": (
        "volume",
        "MountVolume.MountDevice failed for volume: exit status 110 Output: mount error 110 = Connection timed out",
        "storage_unwell",
    ),
    "a node that needs a restart after a fault of the storage": (
        "node",
        "INFO: task kworker/u96:2:1234 blocked for more than 120 seconds. rbd: rbd0: osd4 is unreachable",
        "storage_unwell",
    ),
    "nvidia-uvm missing": (
        "container",
        RUNC + "nvidia-container-cli: mount error: stat failed: /dev/nvidia-uvm: no such file or directory",
        "gpu_uvm_missing",
    ),
    "not enough memory of the GPU": (
        "container",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.",
        "gpu_out_of_memory",
    ),
    "a driver that does not fit its modules": (
        "container",
        "Failed to initialize NVML: Driver/library version mismatch",
        "gpu_driver_mismatch",
    ),
    "a driver that is too old for CUDA": (
        "container",
        "CUDA driver version is insufficient for CUDA runtime version",
        "gpu_software_unfit",
    ),
    "a kernel without the driver's modules": (
        "node",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "gpu_driver_not_loaded",
    ),
    "the network plugin itself is ill": (
        "node",
        "NetworkNotReady: container runtime network not ready: NetworkReady=false",
        "network_plugin_down",
    ),
    "the controller of shared GPUs is ill": (
        "admission",
        'failed calling webhook "vgpu.hami.io": Post "https://hami-scheduler.kube-system.svc:443/webhook": refused',
        "control_plane_slow",
    ),
    # --- B
    "the runtime's socket refuses": (
        "image",
        (
            'Failed to inspect image "lab/tool:1": rpc error: code = Unavailable desc = "transport: '
            'Error while dialing: dial unix /run/containerd/containerd.sock: connect: no such file or directory"'
        ),
        "node_unwell",
    ),
    "the default runtime is not NVIDIA's": (
        "container",
        "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
        "gpu_driver_not_loaded",
    ),
    "another cgroup driver than the tools know": (
        "container",
        RUNC
        + "nvidia-container-cli: mount error: open failed: /sys/fs/cgroup/devices.allow: no such file or directory",
        "gpu_nvml_failed",
    ),
    "a GPU that vanished after a daemon reload": (
        "container",
        "Failed to initialize NVML: Unknown Error",
        "gpu_vanished",
    ),
    "a site without internet": (
        "image",
        'Failed to pull image "docker.io/library/busybox:1": dial tcp: lookup registry-1.docker.io: no such host',
        "image_registry_unreachable",
    ),
    # --- D
    "a volume that is still mounted elsewhere": (
        "volume",
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) old-0',
        "volume_attached_elsewhere",
    ),
    "a file system that is not what it was probed for": (
        "volume",
        "MountVolume.MountDevice failed: 'fsck' found errors on device /dev/rbd1 but could not correct them",
        "volume_damaged",
    ),
    "a volume that can only be read": (
        "container",
        "OSError: [Errno 30] Read-only file system: '/home/me/x'",
        "volume_damaged",
    ),
    "no folder with the driver on an old node": (
        "volume",
        'MountVolume.SetUp failed for volume "driver": hostPath type check failed: /opt/nvidia is not a directory',
        "gpu_driver_not_loaded",
    ),
}

MET = {
    # --- the scheduler
    "no GPU free": ("scheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", "insufficient_resource"),
    "no share free, of the time before HAMi": (
        "scheduling",
        "0/2 nodes are available: 2 Insufficient tencent.com/vcuda-core.",
        "insufficient_resource",
    ),
    "a claim that is not there": (
        "scheduling",
        '0/2 nodes are available: persistentvolumeclaim "absent" not found. not found',
        "volume_missing",
    ),
    "a claim that is not bound": (
        "scheduling",
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        "volume_unbound",
    ),
    "another kind of node": (
        "scheduling",
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
        "node_not_matching",
    ),
    "held by Kueue": ("scheduling", "Scheduling is blocked due to non-empty scheduling gates", "cluster_queue_waits"),
    # --- HAMi
    "HAMi: memory": ("scheduling", "3/8 CardInsufficientMemory", "gpu_share_short"),
    "HAMi: compute": ("scheduling", "3/8 CardInsufficientCore", "gpu_share_short"),
    "HAMi: kind": ("scheduling", "8/8 CardTypeMismatch", "node_not_matching"),
    "HAMi: sharers": ("scheduling", "8/8 CardTimeSlicingExhausted", "gpu_share_short"),
    "HAMi: too few": ("scheduling", "2 nodes NodeInsufficientDevice", "gpu_too_few_together"),
    "HAMi: quota": ("scheduling", "8/8 ResourceQuotaNotFit", "cluster_queue_waits"),
    "HAMi: not healthy": ("scheduling", "1/8 CardNotHealth", "gpu_unhealthy"),
    "HAMi: cordoned": ("scheduling", "1/8 CardCordoned", "gpu_unhealthy"),
    # --- the kubelet, the runtime and NVIDIA's tools
    "a device that its plugin found broken": (
        "container",
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu",
        "gpu_unhealthy",
    ),
    "more shares than one where one is allowed": (
        "container",
        ("UnexpectedAdmissionError: Allocate failed due to rpc error: request for 'nvidia.com/gpu: 2' "
        "too large: maximum request size for shared resources is 1"),
        "gpu_too_few_together",
    ),
    "an image that wants to be root": (
        "container",
        "Error: container has runAsNonRoot and image will run as root",
        "image_user_unfit",
    ),
    "the runtime does not know NVIDIA's": (
        "container",
        'RunContainerError: failed to get sandbox runtime: no runtime for "nvidia" is configured',
        "gpu_nvml_failed",
    ),
    "an Xid of a program": ("gpu", "NVRM: Xid (PCI:0000:9b:00): 31, pid=7, MMU Fault", "gpu_program_fault"),
    "an Xid of a GPU that is gone": ("gpu", "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus", "gpu_lost"),
    "an Xid of damaged memory": ("gpu", "NVRM: Xid (PCI:0000:9b:00): 48, DBE", "gpu_memory_damaged"),
    "an Xid of a repair": ("gpu", "NVRM: Xid (PCI:0000:9b:00): 63, Row Remapper: New row marked", "gpu_repair_due"),
    "rows that could not be replaced": ("gpu", "NVRM: Xid (PCI:0000:9b:00): 64, Row remap", "gpu_memory_damaged"),
    "memory killed": ("container", "OOMKilled", "out_of_memory"),
    "shared memory": (
        "container",
        "RuntimeError: DataLoader worker (pid 41) is killed by signal: Bus error.",
        "shared_memory_full",
    ),
    # --- quotas and refusals
    "a quota of the cluster": (
        "admission",
        "pods is forbidden: exceeded quota: q, requested: limits.cpu=3, used: limits.cpu=139, limited: limits.cpu=140",
        "namespace_quota_exceeded",
    ),
    "pod security": (
        "admission",
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes (volume "h")',
        "object_invalid",
    ),
    "a namespace that goes away": (
        "admission",
        "unable to create new content in namespace a because it is being terminated",
        "object_going_away",
    ),
    # --- storage
    "a missing class": ("volume", 'storageclass.storage.k8s.io "absent" not found', "class_missing"),
    "a provisioner that is not there": (
        "volume",
        "Waiting for a volume to be created either by the external provisioner 'rancher.io/local-path' or manually",
        "volume_unbound",
    ),
    "a driver that is not on the node": (
        "volume",
        "MountVolume.MountDevice failed: driver name rbd.csi.ceph.com not found in the list of registered CSI drivers",
        "volume_not_mountable",
    ),
    "an attach that does not end": (
        "volume",
        "AttachVolume.Attach failed for volume \"pvc-1\" : timed out waiting for external-attacher of rbd.csi.ceph.com",
        "storage_unwell",
    ),
    "growing what was never used": (
        "admission",
        ('PersistentVolumeClaim "a" is invalid: spec: Forbidden: spec is immutable after creation except '
        "resources.requests and volumeAttributesClassName for bound claims"),
        "volume_cannot_resize",
    ),
    # --- MetalLB
    "addresses used up": ("service", 'Failed to allocate IP for "demo/ws-1": no available IPs', "addresses_used_up"),
    "a pool that does not exist": (
        "service",
        'Failed to allocate IP for "demo/ws-1": unknown pool "gpus"',
        "address_failed",
    ),
    "an address that cannot be shared": (
        "service",
        "can't change sharing key for \"demo/ws-1\", address also in use by demo/ws-2",
        "address_failed",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "text", "code"), ARTICLES.values(), ids=ARTICLES)
def test_each_trouble_of_the_articles_is_explained(source: str, text: str, code: str) -> None:
    assert diagnose(source, text).code == code


@pytest.mark.parametrize(("source", "text", "code"), MET.values(), ids=MET)
def test_each_trouble_that_people_met_is_explained(source: str, text: str, code: str) -> None:
    assert diagnose(source, text).code == code
