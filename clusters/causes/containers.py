"""Why a container does not start, or ended: states of containers and pods, and the kubelet's events."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes import gpus
from clusters.causes.cause import Cause

NODE_FAULTS = (
    Cause(
        "evicted_disk",
        r"low on resource: ephemeral-storage|ephemeral local storage usage exceeds|(?<!No)DiskPressure"
        r"|low on resource: nodefs"
        r"|exceeds? (its|the) local ephemeral storage limit|usage of EmptyDir volume .* exceeds",
        _("It was ended because it, or its node, ran out of temporary disk space."),
        _("Write large files to your home or disk instead of /tmp, then start it again."),
    ),
    Cause(
        "evicted_memory",
        r"low on resource: memory|(?<!Sufficient)(?<!No)MemoryPressure|System OOM encountered",
        _("It was ended because its node ran out of memory."),
        _("Start it again. If it happens often, tell an admin: memory may be overcommitted too far."),
        "admin",
    ),
    Cause(
        "evicted",
        r"^Evicted\b|low on resource: (?P<resource>\S*\w)|TaintManagerEviction|DeletionByTaintManager",
        _("It was ended by its node, which was short of something or taken out of use."),
        _("It starts again by itself. Tell an admin if it happens often."),
        "admin",
    ),
    Cause(
        "node_full",
        r"\bOutOf(?P<resource>cpu|memory|pods|[\w.-]+[-/][\w.-]+)\b"
        r"|Node didn't have enough resource: (?P<lacking>[^,]+)",
        _("The node had no room any more when the container arrived."),
        _("It is placed anew by itself."),
    ),
    Cause(
        "node_refuses",
        r"Predicate \S+ failed|NodeAffinity\b|TopologyAffinityError|Resources cannot be allocated with Topology",
        _("The node would not take the container."),
        _("It is placed anew by itself. Tell an admin if it happens again."),
        "admin",
    ),
    Cause(
        "node_lost",
        r"NodeLost|NodeNotReady|node is not ready|node (was|is) (unresponsive|unreachable)|Kubelet stopped posting"
        r"|NodeStatusUnknown|PodGC|NodeShutdown|node shut ?down|in response to imminent node shutdown"
        r"|\bTerminated\b.*shutdown",
        _("Its node does not answer any more, or was shut down."),
        _("Your files are kept. An admin has to look at the node before its GPUs can be given to others."),
        "admin",
    ),
    Cause(
        "preempted",
        r"^Preempted|Preempting|preempted by|DisruptionTarget",
        _("It was ended to make room for something with a higher priority."),
        _("It starts again by itself when there is room."),
    ),
)

NETWORK_FAULTS = (
    Cause(
        "network_no_address",
        r"failed to (request|assign)( \d+| an)? IP|no (free|available) IP|no IP addresses available"
        r"|No configured Calico pools"
        r"|could not (find|assign).*(IP|ip) ?(pool|address)|IP pool.*(exhausted|full)|failed to allocate for range"
        r"|the given pool .* does not exist|InsufficientFreeAddresses|unable to allocate IP",
        _("The network of the node has no address left for the container."),
        _("It is tried again by itself. An admin has to widen the pod network or look at its plugin."),
        "admin",
    ),
    Cause(
        "network_plugin_down",
        r"network plugin is not ready|cni plugin not initialized|/var/lib/calico/nodename|failed to find plugin"
        r"|failed to set ?up (network for )?sandbox|networkPlugin cni failed|plugin type=\S+ (name=\S+ )?failed"
        r"|NetworkNotReady|error adding host side routes",
        _("The network of the node does not work, so the container cannot start there."),
        _("It is tried again by itself. An admin has to look at the network plugin of that node."),
        "admin",
    ),
)

_EXIT = r"exit (?:code|status):? ?"

CAUSES = (
    *gpus.CAUSES,
    *NODE_FAULTS,
    *NETWORK_FAULTS,
    Cause(
        "node_unwell",
        r"KubeletNotReady|container runtime is down|PLEG is not healthy",
        _("Its node reports that it cannot run containers at the moment."),
        _("What runs there may go on. An admin has to look at that node."),
        "admin",
    ),
    Cause(
        "out_of_memory",
        r"OOMKilled|out of memory|memory cgroup|invoked oom-killer",
        _("It used more memory than it may, and was ended."),
        _("Start it with more memory, or load less data at once."),
    ),
    Cause(
        "image_user_is_root",
        r"runAsNonRoot and image (will run as root|has non-numeric user)|non-numeric user",
        _("The image wants to run as root, which this cluster does not allow."),
        _("Choose another image. An admin can set the user of this one in the catalogue."),
        "admin",
    ),
    Cause(
        "settings_missing",
        r'(?P<kind>secret|configmap)s? "(?P<name>[^"]*)" not found',
        _("A part of its settings is missing in the cluster: the %(kind)s %(name)s."),
        _("Start it again: Berth writes its settings anew. Tell an admin if that does not help."),
    ),
    Cause(
        "settings_key_missing",
        r"couldn't find key (?P<key>\S+) in (?P<kind>\S+)",
        _("A part of its settings is missing in the cluster: %(key)s in its %(kind)s."),
        _("Start it again: Berth writes its settings anew. Tell an admin if that does not help."),
    ),
    Cause(
        "volume_not_in_container",
        r'\bmounting \\*"/(?!proc\b|sys\b|dev\b)[^"]*" to rootfs',
        _("A volume could not be mounted."),
        _("Start it again; tell an admin if that does not help."),
        "admin",
    ),
    Cause(
        "start_program_missing",
        rf"executable file not found|no such file or directory: unknown|stat \S+: no such file|{_EXIT}127\b",
        _("The image lacks a program that is needed to start."),
        _("Choose another image: it needs a shell, and Jupyter."),
    ),
    Cause(
        "start_not_permitted",
        rf"(\bexec\b|OCI runtime|starting container).*(permission denied|operation not permitted)"
        rf"|permission denied: unknown|{_EXIT}126\b",
        _("The image's program may not be run by its user."),
        _("Choose another image. An admin can correct this one's user in the catalogue."),
        "admin",
    ),
    Cause(
        "shared_memory_full",
        r"(insufficient|out of) shared memory|unable to write to file </torch_"
        r"|DataLoader worker .* killed by signal: Bus error",
        _("Shared memory (/dev/shm) was full."),
        _(
            "Use fewer workers in the data loader, or start it with more memory: shared memory is a part of it."
        ),
    ),
    Cause(
        "home_not_writable",
        r"(Permission denied|EACCES)\b.*(/home/|/\.(local|jupyter|cache|config)\b)",
        _("Its user may not write into the home folder."),
        _("Tell an admin: the user of this image in the catalogue has to be the one who owns the home."),
        "admin",
    ),
    Cause(
        "name_not_looked_up",
        r"^(?!.*\b(image|pull)).*(Temporary failure in name resolution|Name or service not known"
        r"|Could not resolve host|lookup \S+( on \S+)?: (no such host|server misbehaving|Try again|i/o timeout))",
        _("A name could not be looked up from inside the container."),
        _(
            "Check the name. If others are not found either, tell an admin: the cluster's name service has a fault."
        ),
        "admin",
    ),
    Cause(
        "wrong_processor",
        r"exec format error",
        _("The image was built for another kind of processor."),
        _("Choose another image."),
    ),
    Cause(
        "container_runtime_down",
        r"containerd\.sock|crio\.sock|Error while dialing|container runtime is down|PLEG is not healthy",
        _("The container runtime of the node does not answer."),
        _("An admin has to look at containerd (or CRI-O) on that node. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "sandbox_failed",
        r"FailedCreatePodSandBox|Failed to create pod sandbox|SandboxChanged|DeadlineExceeded"
        r"|failed to sync (secret|configmap) cache",
        _("The node could not prepare the container."),
        _("It is tried again by itself. Tell an admin if it lasts."),
        "admin",
    ),
    Cause(
        "killed",
        rf"{_EXIT}137\b",
        _("It was killed, most often because it used more memory than it may."),
        _("Start it with more memory if that happens again."),
    ),
    Cause(
        "crashed",
        rf"{_EXIT}(?:139|134|136)\b|Segmentation fault|core dumped",
        _("A program in it crashed."),
        _("Look at its logs. A library that does not fit the GPU's driver is a frequent cause."),
    ),
    Cause(
        "terminated",
        rf"{_EXIT}(?:143|130)\b",
        _("It was told to end."),
        _("Start it again when you need it."),
    ),
    Cause(
        "completed_early",
        rf"{_EXIT}0\b",
        _("Its program ended by itself, without an error."),
        _("Look at its logs: a workspace's program must keep running."),
    ),
    Cause(
        "exited",
        rf"{_EXIT}(?P<exit_code>\d+)\b",
        _("Its program ended with an error (exit code %(exit_code)s)."),
        _("Look at its logs: the last lines usually say why."),
    ),
    Cause(
        "crash_loop",
        r"CrashLoopBackOff|restarting failed container",
        _("It ends again and again right after its start."),
        _("Look at its logs: the last lines usually say why."),
    ),
    Cause(
        "config_error",
        r"CreateContainerConfigError",
        _("The container's settings cannot be used by the node."),
        _("Start it again: Berth writes its settings anew. Tell an admin if that does not help."),
        "admin",
    ),
    Cause(
        "start_failed",
        r"RunContainerError|CreateContainerError|StartError|ContainerCannotRun|failed to create (shim|containerd) task"
        r"|OCI runtime|PostStartHookError|PreCreateHookError",
        _("The node could not start the container."),
        _("Start it again; tell an admin if that does not help."),
        "admin",
    ),
    Cause(
        "probe_failing",
        r"(Startup|Readiness|Liveness) probe failed|\bUnhealthy\b|Server at \S+ didn't respond",
        _("It runs, but Jupyter or SSH does not answer yet."),
        _("Wait a little. If it lasts, look at its logs."),
    ),
)
