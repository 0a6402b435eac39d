"""Causes on a node's side: it ends or refuses a container, is short of something, has no network, or is away.

Patterns are for the kubelet's words in a pod's status and events, and a node's conditions, events and taints.
"""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from clusters.causes.cause import Cause

SHORT_OF_DISK = Cause(
    "node_short_of_disk",
    r"disk-pressure|HasDiskPressure|has disk pressure|\bDiskPressure\b|FreeDiskSpaceFailed|ImageGCFailed"
    r"|InvalidDiskCapacity"
    r"|reclaim (?:ephemeral-storage|nodefs|imagefs)|garbage collect required amount of images"
    r"|(?:\b(?:layer|image|blob|pull|containerd|sandbox)\b|/var/lib/kubelet\b)[^\n]*"
    r"(?:no space left on device|disk quota exceeded)",
    _(
        "The node is nearly out of disk space: nothing new starts there, and running workspaces may be stopped."
    ),
    _(
        "If your workspace runs there, delete large files outside your home directory that you do not "
        "need. An admin has to free disk space on the node. Starting again may pick another node."
    ),
    "admin",
    ngettext_lazy(
        "%(nodes)s node is short of disk space", "%(nodes)s nodes are short of disk space", "nodes"
    ),
)

SHORT_OF_MEMORY = Cause(
    "node_short_of_memory",
    r"(?:memory|pid)-pressure|HasMemoryPressure|\b(?:Memory|PID)Pressure\b|HasInsufficient(?:Memory|PID)"
    r"|has insufficient (?:memory|PID)"
    r"|reclaim memory|System OOM encountered"
    # A program of the node itself cannot be started.
    r"|fork/exec /\S*(?:cni|containerd|runc|kubelet)\S*: (?:resource temporarily unavailable|cannot allocate memory)",
    _(
        "The node is nearly out of memory or process IDs: nothing new starts there, and running workspaces "
        "may be stopped."
    ),
    _(
        "If your workspace runs there, save what is only in memory. An admin has to check what fills the node."
    ),
    "admin",
    ngettext_lazy("%(nodes)s node is short of memory", "%(nodes)s nodes are short of memory", "nodes"),
)

NETWORK_DOWN = Cause(
    "network_plugin_down",
    r"network plugin is not ready|cni plugin not initialized|/var/lib/calico/nodename|failed to find plugin"
    r"|failed to set ?up (?:network for )?sandbox|networkPlugin cni failed|plugin type=\S+ (?:name=\S+ )?failed"
    r"|NetworkNotReady|error adding host side routes|network-unavailable"
    r"|failed to (?:request|assign)(?: \d+| an)? IP|no (?:free|available) IP|no IP addresses available"
    r"|No configured Calico pools|could not (?:find|assign).*IP ?(?:pool|address)|IP pool.*(?:exhausted|full)"
    r"|failed to allocate for range|the given pool .* does not exist|InsufficientFreeAddresses"
    r"|unable to allocate IP|No networks found in|CNI request failed|netplugin failed|cni config (?:uninit|load)"
    r"|set bridge addr|/run/flannel/|cilium\.sock|request ip return|to CNI network|adding container to network"
    r"|Unable to create endpoint\b[^\n]*cilium|/ns/net\b|network namespace|network is not ready|\bnetworkPlugin\b"
    r"|\b(?:cni|ipam|calico|cilium|flannel|weave|multus|antrea|kube-ovn|ovn|vpc-cni|aws-cni|azure-vnet|sandbox)\b"
    r"[^\n]{0,200}\bnetwork\b[^\n]{0,200}\b(?:fail|error|timed? ?out|refused|unauthorized|no such)"
    r"|\b(?:cni|ipam|calico|cilium|flannel|multus|antrea|kube-ovn|aws-cni|azure-vnet)\b[^\n]{0,200}"
    r"\b(?:fail\w*|error|timeout|refused|unauthorized|not ready)",
    _("The network of the node does not work, or has no address left: nothing new can start there."),
    _(
        "Berth retries automatically. An admin has to check the network plugin of that node, and whether "
        "the pod network needs more addresses."
    ),
    "admin",
    ngettext_lazy("%(nodes)s node has no network", "%(nodes)s nodes have no network", "nodes"),
)

UNWELL = Cause(
    "node_unwell",
    r"KubeletNotReady|container runtime (?:is (?:down|not)|status|network)|Cannot connect to the Docker daemon"
    r"|\bPLEG\b"
    r"|containerd\.sock|crio\.sock|docker\.sock|dockershim|Error while dialing|grpc: the (?:client )?connection is"
    r"|\b(?:containerd|cri-o|crio|dockerd|docker daemon|container runtime|kubelet)\b[^\n]{0,60}"
    r"\b(?:not (?:running|respond\w*|ready|healthy)|unavailable|unhealthy|unreachable|hung|stopped|crash\w*)\b"
    r"|services have not yet been read|Kill(?:Container|PodSandbox)Error|failed to (?:kill"
    r"|stop) (?:the )?(?:container|pod)"
    r"|Cannot (?:kill|stop) container|(?:container|shim|task)\b[^\n]{0,80}(?:ttrpc: closed|did not (?:exit"
    r"|terminate))"
    r"|failed to (?:connect to|start|load) (?:the )?shim\b|\bshim (?:disconnected|exited|died)"
    r"|cgroups?: cgroup (?:deleted|mount)|OCI runtime state failed"
    r"|ImageInspectError|Failed to inspect image|failed to reserve (?:container|sandbox) name"
    r"|error determining status: rpc error|failed to run Kubelet|Failed to start ContainerManager"
    r"|\bFailed to create cgroup\b|root container \[kubepods\] doesn't exist"
    r"|timing out in CRI-O|context deadline exceeded: error reserving|^(?:Error: )?context deadline exceeded\.?$",
    _(
        "The node cannot start containers at the moment: its container runtime or its kubelet does not answer."
    ),
    _(
        "Running workspaces there may continue. An admin has to check containerd (or CRI-O) and the "
        "kubelet of that node. Starting again may pick another node."
    ),
    "admin",
)

# Words of what starts containers on a node, where nothing else was recognised.
ANY_FAULT = replace(
    UNWELL,
    pattern=r"\bsd-bus\b|\bsystemd\b[^\n]{0,120}(?:fail|error|not found|timed? ?out)|\bdbus\b|\bconmon\b|\bcgroups?\b"
    r"|\b[\w-]+\.(?:slice|scope)\b"
    r"|\bclient certificate\b[^\n]{0,120}\bexpired\b|\b(?:kubelet|node)\b[^\n]{0,120}\b(?:certificate"
    r"|x509)\b[^\n]{0,80}(?:expired|not yet valid"
    r"|unknown authority)",
    of_its_source=True,
)

LIMIT_REACHED = Cause(
    "node_limit_reached",
    r"Too many pods|exceed max volume count",
    _("Nodes have reached a limit: running containers, attached volumes, watched files or locked memory."),
    _("Starts automatically when something else ends. An admin can raise the limits of the nodes."),
    "admin",
    ngettext_lazy("%(nodes)s node is full", "%(nodes)s nodes are full", "nodes"),
)

# Limits that are worded like others: watches of files like a full disk, memory locked for InfiniBand like all memory.
OTHER_LIMITS = replace(
    LIMIT_REACHED,
    pattern=r"inotify[^\n]*(?:too many open files|no space left|limit|exhausted)"
    r"|watch[^\n]*(?:too many open files|no space left on device)|limit for number of file watchers"
    r"|\bibv_[^\n]*Cannot allocate memory",
)

# Messages of the kubelet; tried before the causes of containers and after those of GPUs.
CAUSES = (
    Cause(
        "temporary_disk_full",
        r"ephemeral local storage usage exceeds|exceed(?:s|ed)? (?:its|the) local ephemeral storage limit"
        r"|usage of EmptyDir volume .* exceeds",
        _("It wrote more temporary files than allowed and was stopped."),
        _("Write large files to your home or disk instead of /tmp, then start it again."),
    ),
    Cause(
        "evicted",
        r"(?:\blow on resource: |\bhad condition: \[)(?P<resource>[\w.-]*\w)"
        r"|^Evicted\b(?!.*(?:[Pp]reempt|low on resource: |had condition: ))|eviction manager: must evict",
        _("It was stopped because its node ran out of %(resource)s."),
        _(
            "It restarts automatically. If disk space ran out, write large files to your home directory or "
            "disk instead of /tmp. If it happens often, tell an admin: the node may be overcommitted."
        ),
        "admin",
    ),
    OTHER_LIMITS,
    SHORT_OF_DISK,
    SHORT_OF_MEMORY,
    Cause(
        "node_refuses",
        r"\bOutOf(?:cpu|memory|pods|[\w.-]+[-/][\w.-]+)\b|Node didn't have enough resource: "
        r"|UnexpectedAdmissionError|\bAllocate failed|requested number of devices unavailable"
        r"|Update plugin resources failed|Predicate \S+ failed|NodeAffinity\b|TopologyAffinityError"
        r"|Resources cannot be allocated with Topology|, which is unexpected\b|prepare dynamic resources"
        r"|DRA driver \S+ is not registered|NodePrepareResources failed|SysctlForbidden|forbidden sysctl"
        r"|\bPod was rejected\b|unable to find GPU device|device (?:plugin|number|allocation)\b[^\n]{0,60}"
        r"(?:fail|not match|not found|unavailable|stopped|timed out)"
        r"|Cannot enforce AppArmor",
        _(
            "The node rejected the container: it had no room left, could not provide the promised GPU, or "
            "its own rules forbid it."
        ),
        _(
            "Berth retries automatically. If it happens again, tell an admin: the device plugin of that "
            "node may need a restart."
        ),
        "admin",
    ),
    Cause(
        "node_lost",
        r"NodeLost|NodeNotReady|node is not ready|node (?:was|is) (?:unresponsive|unreachable)"
        r"|Kubelet stopped posting"
        r"|NodeStatusUnknown|PodGC|NodeShutdown|node shut ?down|node is shutting down|node[^\n]{0,60}no longer exists"
        r"|(?:spot|preemptible) (?:instance|node|VM)\b|instance was (?:terminated|preempted|deleted)"
        r"|in response to imminent node shutdown"
        r"|\bTerminated\b.*shutdown|\bhas been rebooted\b|TaintManagerEviction|DeletionByTaintManager",
        _("Its node does not answer any more, or was shut down."),
        _("Your files are kept. An admin has to check the node before its GPUs can be given to others."),
        "admin",
    ),
    Cause(
        "preempted",
        r"\bpreempt(?:ed|ing) (?:by|in|to|pod|workload|due|for)\b|^Preempt(?:ed|ing)\b|DisruptionTarget"
        r"|(?:higher|greater) priority[^\n]{0,60}\b(?:evict|stop|terminat|preempt)",
        _("It was stopped to make room for something with higher priority."),
        _("It restarts automatically when there is room."),
    ),
    NETWORK_DOWN,
    UNWELL,
)
