"""Commands with which admins look into a cause and mend it, on the node or with kubectl. People never see them.

A step says what it is for; its commands are shown as they are. NODE stands for the node's name where that is known;
other words in capitals are for the admin to fill in. Commands that delete data are not among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Step:
    purpose: StrOrPromise
    commands: tuple[str, ...]


_PODS_OF_NODE = "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE"
_KERNEL_LOG = "dmesg -T | grep -iE 'xid|nvrm'"
_RESTART_NODE = Step(
    _("If that does not help, drain the node on its page, then restart it:"), ("systemctl reboot",)
)
_RESET_GPU = Step(
    _("Reset the GPU once nobody uses it; if that fails, restart the node:"),
    ("nvidia-smi -q -d ROW_REMAPPER,ECC", "nvidia-smi --gpu-reset -i INDEX"),
)
_CDI = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
_CEPH = (
    Step(_("What Ceph says of itself:"), ("ceph health detail", "ceph -s")),
    Step(
        _("An OSD that flaps (goes down and up again):"),
        (
            "ceph osd tree down",
            "ceph osd set noout",
            "journalctl -u 'ceph*osd*' --since -1h",
            "ceph osd unset noout",
        ),
    ),
    Step(
        _("A slow metadata server (MDS):"),
        ("ceph fs status", "ceph tell mds.0 dump_ops_in_flight", "ceph mds fail 0"),
    ),
    Step(
        _("A node whose mounts still hang after an OSD's fault: drain it on its page, then restart it:"),
        ("dmesg -T | grep -E 'libceph|rbd|blocked for more'", "systemctl reboot"),
    ),
)

_PARTS = (
    Step(
        _("Its pods, and why they are not well:"),
        (
            "kubectl get pods -A -o wide | grep -i PART",
            "kubectl -n NAMESPACE describe pod POD",
            "kubectl -n NAMESPACE logs POD --previous",
        ),
    ),
)

COMMANDS: dict[str, tuple[Step, ...]] = {
    "part_crashing": _PARTS,
    "part_not_ready": _PARTS,
    "part_missing": (
        Step(
            _("Its DaemonSet, and what keeps it off the nodes:"),
            ("kubectl get daemonsets -A", "kubectl describe node NODE | grep -A 5 Taints", _PODS_OF_NODE),
        ),
    ),
    "part_absent": _PARTS,
    "part_versions_differ": (
        Step(
            _("How far its update came:"),
            (
                "kubectl -n NAMESPACE rollout status daemonset NAME",
                "kubectl get pods -A -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image",
            ),
        ),
    ),
    "node_overloaded": (
        Step(_("What uses it:"), ("top -b -n 1 | head -30", "iostat -x 1 3", "df -h", _PODS_OF_NODE)),
    ),
    "node_network_faulty": (
        Step(_("Errors by network card:"), ("ip -s link", "ethtool -S CARD | grep -iE 'err|drop|crc'")),
    ),
    "ceph_unwell": _CEPH,
    "gpu_uvm_missing": (
        Step(
            _("Load the module and make its device files:"),
            (
                "modprobe nvidia-uvm",
                "MAJOR=$(awk '$2 == \"nvidia-uvm\" {print $1}' /proc/devices)",
                "mknod -m 666 /dev/nvidia-uvm c $MAJOR 0",
                "mknod -m 666 /dev/nvidia-uvm-tools c $MAJOR 1",
            ),
        ),
        Step(
            _("Do so at every boot:"),
            (
                "echo nvidia-uvm > /etc/modules-load.d/nvidia-uvm.conf",
                "systemctl enable --now nvidia-persistenced",
            ),
        ),
    ),
    "gpu_driver_not_loaded": (
        Step(
            _("Is the driver there for this kernel?"),
            ("uname -r", "dkms status", "modprobe nvidia", "nvidia-smi", "dmesg -T | grep -i nvidia"),
        ),
        Step(
            _("If containers do not find it (could not load NVML library), make nvidia the default runtime:"),
            (
                "nvidia-ctk runtime configure --runtime=containerd --set-as-default",
                "systemctl restart containerd",
            ),
        ),
    ),
    "gpu_driver_mismatch": (
        Step(_("Compare both versions:"), ("cat /proc/driver/nvidia/version", "modinfo -F version nvidia")),
        _RESTART_NODE,
    ),
    "gpu_nvml_failed": (
        Step(
            _("Versions that have to fit each other:"),
            ("nvidia-container-cli --version", "runc --version", "containerd --version", "nvidia-smi"),
        ),
        Step(
            _("Update the toolkit (older ones do not know control groups of version 2 or of systemd):"),
            ("apt-get install --only-upgrade nvidia-container-toolkit libnvidia-container1", _CDI),
        ),
        Step(
            _("Kubelet and container runtime must use the same driver for control groups:"),
            (
                "grep -i cgroupDriver /var/lib/kubelet/config.yaml",
                "grep -i SystemdCgroup /etc/containerd/config.toml",
            ),
        ),
    ),
    "gpu_vanished": (
        Step(
            _("Keep it from happening at the next daemon reload, then restart what lost its GPU:"),
            ("nvidia-ctk system create-dev-char-symlinks --create-all", _CDI, "systemctl restart containerd"),
        ),
    ),
    "gpu_lost": (
        Step(_("What the driver said:"), (_KERNEL_LOG, "nvidia-smi -L", "lspci | grep -i nvidia")),
        _RESTART_NODE,
    ),
    "gpu_stuck": (Step(_("What the driver said:"), (_KERNEL_LOG,)), _RESET_GPU, _RESTART_NODE),
    "gpu_memory_damaged": (_RESET_GPU,),
    "gpu_repair_due": (_RESET_GPU,),
    "gpu_link_fault": (
        Step(
            _("Fabric manager and links:"),
            (
                "systemctl status nvidia-fabricmanager",
                "systemctl enable --now nvidia-fabricmanager",
                "nvidia-smi nvlink --status",
                "nvidia-smi topo -m",
            ),
        ),
        _RESTART_NODE,
    ),
    "gpu_slowed": (Step(_("What slows it:"), ("nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",)),),
    "gpu_plugin_down": (
        Step(
            _("The device plugin's pod there, and its log:"), (_PODS_OF_NODE, "kubectl -n NAMESPACE logs POD")
        ),
        Step(_("Restart it:"), ("kubectl -n NAMESPACE delete pod POD",)),
    ),
    "node_refuses": (
        Step(
            _("The device plugin's pod there, and its log:"), (_PODS_OF_NODE, "kubectl -n NAMESPACE logs POD")
        ),
        Step(_("Restart it:"), ("kubectl -n NAMESPACE delete pod POD",)),
    ),
    "gpu_sharing_failed": (
        Step(
            _("MPS, MIG and HAMi on the node:"),
            ("nvidia-smi mig -lgi", "nvidia-smi -q -d COMPUTE", "ls -l /usr/local/vgpu", _PODS_OF_NODE),
        ),
    ),
    "gpu_takes_no_program": (
        Step(_("What holds the GPU:"), ("nvidia-smi", "fuser -v /dev/nvidia*", "ls -l /dev/nvidia-uvm")),
    ),
    "gpu_share_short": (
        Step(
            _("What is given out there:"),
            ("kubectl describe node NODE", "kubectl get nodes -o yaml | grep -i hami.io"),
        ),
    ),
    "hami_not_handled": (
        Step(
            _("HAMi's scheduler and webhook:"),
            (
                "kubectl get pods -A | grep -i hami",
                "kubectl get mutatingwebhookconfigurations | grep -i hami",
                "kubectl -n NAMESPACE get pod POD -o jsonpath='{.spec.schedulerName}'",
            ),
        ),
    ),
    "insufficient_resource": (
        Step(
            _("What a node has, and what is requested of it (also of ephemeral-storage):"),
            ("kubectl describe node NODE | grep -A 12 -E '^(Allocatable|Allocated resources)'",),
        ),
    ),
    "node_short_of_disk": (
        Step(
            _("What fills the disk, and what can go without a loss:"),
            (
                "df -h / /var/lib/kubelet /var/lib/containerd",
                "crictl rmi --prune",
                "journalctl --vacuum-size=500M",
                "du -xh --max-depth=2 /var | sort -h | tail -20",
            ),
        ),
    ),
    "evicted": (Step(_("What the node is short of:"), ("kubectl describe node NODE", "df -h", "free -m")),),
    "node_short_of_memory": (
        Step(_("What fills the memory:"), ("free -m", "ps aux --sort=-rss | head -20")),
    ),
    "node_unwell": (
        Step(
            _("Container runtime and kubelet:"),
            (
                "systemctl status containerd kubelet",
                "journalctl -u containerd -u kubelet --since -10min",
                "ls -l /run/containerd/containerd.sock",
                "crictl info",
            ),
        ),
        Step(_("Restart them; running containers go on:"), ("systemctl restart containerd kubelet",)),
    ),
    "node_lost": (
        Step(
            _("What the cluster and the node say:"),
            (
                "kubectl describe node NODE",
                "systemctl status kubelet",
                "journalctl -u kubelet --since -10min",
            ),
        ),
    ),
    "node_limit_reached": (
        Step(
            _("The limits: pods, watched files, locked memory:"),
            (
                "grep maxPods /var/lib/kubelet/config.yaml",
                "sysctl -w fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192",
                "systemctl show containerd -p LimitMEMLOCK",
            ),
        ),
    ),
    "network_plugin_down": (
        Step(
            _("The network plugin's pods:"),
            ("kubectl get pods -A -o wide | grep -iE 'calico|cilium|flannel|multus'", _PODS_OF_NODE),
        ),
        Step(
            _("Calico without an address to give: find leaked ones, then add a pool:"),
            (
                "calicoctl ipam show --show-blocks",
                "calicoctl ipam check -o report.json",
                "calicoctl ipam release --from-report=report.json",
                "calicoctl get ippools -o wide",
            ),
        ),
    ),
    "storage_unwell": _CEPH,
    "volume_not_mountable": (
        Step(
            _(
                "CephFS that no further host can mount (error 12): how many clients, and how much memory there is:"
            ),
            (
                "ceph tell mds.0 session ls | grep -c '\"id\"'",
                "ceph config get mds mds_cache_memory_limit",
                "free -m",
                "dmesg -T | grep -E 'ceph|page allocation'",
            ),
        ),
        Step(
            _("The storage's driver and programs on the node:"),
            ("kubectl get csinode NODE -o yaml", "modprobe ceph", "apt-get install ceph-common nfs-common"),
        ),
    ),
    "volume_damaged": (
        Step(
            _("A superblock that cannot be read: look first, without writing:"),
            ("dmesg -T | tail -50", "blkid -p DEVICE", "xfs_repair -n DEVICE", "e2fsck -n DEVICE"),
        ),
        *_CEPH[:1],
    ),
    "volume_formatting": (
        Step(
            _("A disk that appears to be unformatted: who else has it, and what is on it?"),
            (
                "kubectl get volumeattachments",
                "rbd status POOL/IMAGE",
                "blkid -p DEVICE",
                "wipefs --no-act DEVICE",
            ),
        ),
    ),
    "volume_attached_elsewhere": (
        Step(
            _("Who has it:"),
            ("kubectl get volumeattachments", "rbd status POOL/IMAGE", "grep VOLUME /proc/mounts"),
        ),
    ),
    "volume_failed": (
        Step(
            _("What the node's storage driver says:"),
            (_PODS_OF_NODE, "kubectl -n NAMESPACE logs POD --all-containers"),
        ),
        Step(
            _("What the provisioner says:"),
            ("kubectl get pods -A | grep -iE 'csi|provisioner'", "kubectl -n NAMESPACE describe pvc PVC"),
        ),
    ),
    "volume_unbound": (
        Step(
            _("What the provisioner says:"),
            ("kubectl get pods -A | grep -iE 'csi|provisioner'", "kubectl -n NAMESPACE describe pvc PVC"),
        ),
    ),
    "image_registry_unreachable": (
        Step(
            _("From the node itself:"),
            ("crictl pull IMAGE", "curl -v https://REGISTRY/v2/", "cat /etc/resolv.conf"),
        ),
    ),
    "addresses_used_up": (Step(_("The load balancer's pools:"), ("kubectl get ipaddresspools -A -o yaml",)),),
    "addresses_nearly_used_up": (
        Step(_("The load balancer's pools:"), ("kubectl get ipaddresspools -A -o yaml",)),
    ),
    "address_failed": (
        Step(
            _("What the load balancer says:"),
            (
                "kubectl -n NAMESPACE describe service SERVICE",
                "kubectl -n metallb-system logs deploy/controller",
            ),
        ),
    ),
    "control_plane_slow": (
        Step(
            _("Webhooks and the API server:"),
            (
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
                "kubectl get --raw /readyz?verbose",
            ),
        ),
    ),
    "server_not_reached": (
        Step(
            _("The cluster's name service:"),
            (
                "kubectl -n kube-system get pods -l k8s-app=kube-dns",
                "kubectl -n kube-system logs -l k8s-app=kube-dns",
            ),
        ),
        Step(
            _("What may leave the namespace, and by which proxy:"),
            (
                "kubectl get networkpolicies -n NAMESPACE",
                "kubectl -n NAMESPACE exec POD -- env | grep -i proxy",
            ),
        ),
    ),
    "workers_disconnected": (
        Step(
            _("Network and RDMA of the nodes:"),
            ("ip -brief address", "ibstat", "nvidia-smi topo -m"),
        ),
    ),
    "agent_silent": (Step(_("The agent's pod there:"), (_PODS_OF_NODE, "kubectl -n NAMESPACE logs POD")),),
    "websocket_blocked": (
        Step(
            _("Lines for nginx, for example:"),
            (
                "proxy_http_version 1.1;",
                "proxy_set_header Upgrade $http_upgrade;",
                'proxy_set_header Connection "upgrade";',
                "proxy_read_timeout 1h;",
            ),
        ),
    ),
}


def commands(code: str, node: str = "") -> tuple[Step, ...]:
    """Return the steps for a cause, with the node's name filled in if it is given; none for most causes of people."""
    steps = COMMANDS.get(code, ())
    if not node:
        return steps
    return tuple(
        replace(step, commands=tuple(one.replace("NODE", node) for one in step.commands)) for step in steps
    )
