"""Reasons why a container does not start, or ended: states of containers and pods, and output of programs."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from clusters.causes import gpus, images, nodes, volumes
from clusters.causes.cause import Cause

_EXIT = r"exit ?(?:code|status):?\s*"

PROBE_FAILING = Cause(
    "probe_failing",
    r"(?:Startup|Readiness|Liveness) probe (?:failed|errored)|\bUnhealthy\b|Server at \S+ didn't respond"
    r"|\b503 [A-Z]+ /\S* (?:connect ECONNREFUSED|socket hang up)",
    _("It runs, but Jupyter or SSH does not answer yet."),
    _(
        "Wait a little. If this continues, check its logs: an image without JupyterLab or an SSH server says so there."
    ),
)

# Processes of one training, on one node or several. Which of them failed first is told by none of the others.
WORKERS_DISCONNECTED = Cause(
    "workers_disconnected",
    r"\bnccl(?:Unhandled\w*|System|Internal|Remote|InvalidUsage|InvalidArgument)?Error\b|\bNCCL (?:error|failure"
    r"|timeout)"
    r"|\b(?:NCCL|gloo|MPI|UCX|ProcessGroup\w*|c10d|TCPStore|rendezvous\w*|DistStore|Horovod)\b[^\n]{0,200}"
    r"\b(?:fail\w*|\w*error|time(?:d )?out|abort\w*|closed|reset|refused|terminated|lost|unreachable)\b"
    r"|\bRendezvous(?:\w*Error|ClosedError|TimeoutError)|\btorch\.distributed\.Dist\w+Error"
    r"|\bcollective operation timeout"
    r"|\b(?:ProcessGroup\w*|WorkNCCL|watchdog)\b[^\n]{0,200}\b(?:stuck|hang|hung|timing out|exception)\b"
    r"|\bSocket ?Timeout\b|\bEtcd(?:Exception|KeyNotFound)|torch/elastic/store|broadcastUniqueNCCLID"
    r"|\bIBV_WC_\w+ERR|\bMPI_ABORT|(?:address already in use|EADDRINUSE)[^\n]{0,80}(?:29\d\d\d|rank|master)"
    r"|\b(?:rank|worker)s? \d+[^\n]{0,60}\b(?:disconnected|timed out|lost connection)",
    _("The processes of the training lost contact with each other, or did not find each other."),
    _(
        "Look at the logs of the other processes first: if one of them failed before, that is the reason. Check the "
        "address, the port and the number of processes that they were started with. If all are right, an admin has "
        "to check the network between the nodes. Too little shared memory (/dev/shm) can look like this, too."
    ),
    "admin",
)

# Before a text about an image, a volume or the node's own parts, which say more about the same words.
_OF_A_PROGRAM = (
    r"^(?!.*\b(?:image|pull\w{0,6}|registry|mount\w{0,8}|volume|webhook|to the server"
    r"|Error response from daemon|rpc error|containerd|kubelet|sandbox|6443|etcd\w{0,8})\b).*"
)

SERVER_NOT_REACHED = Cause(
    "server_not_reached",
    _OF_A_PROGRAM
    + r"(?:Temporary failure in name resolution|Name or service not known|Could not resolve host|unable to resolve host"
    r"|Temporary failure resolving|EAI_AGAIN|\bENOTFOUND\b|getaddrinfo|NameResolutionError|No address associated with"
    r"|lookup \S+(?: on \S+)?: (?:no such host|server misbehaving|Try again|i/o timeout)"
    r"|Max retries exceeded|\b(?:Connect|Connection|Read|NewConnection|Proxy|SSL"
    r"|SSLCert\w*)(?:Timeout)?(?:Error)?\b: "
    r"|Connection(?:Refused|Reset|Aborted)?Error|(?:Connect|Read)Timeout|\bread timed out|RemoteDisconnected"
    r"|certificate verify failed|CERTIFICATE_VERIFY_FAILED|self[- ]signed certificate|unable to get local issuer"
    r"|Tunnel connection failed|Could not fetch URL|LocalEntryNotFoundError|couldn't connect to"
    r"|failed to connect to \S+ port"
    r"|network is unreachable|no route to host|connection timed out|connection refused|connection reset by peer"
    r"|\bcurl: \((?:5|6|7|28|35|56|60)\)|dial tcp|i/o timeout|TLS handshake timeout|x509: )",
    _(
        "The program did not reach a server: its name is not found, nothing answers, or its certificate is not trusted."
    ),
    _(
        "Check the address. If other servers are not reached either, tell an admin: the cluster's name service, its "
        "firewall or its proxy may have a fault."
    ),
    "admin",
)

PROGRAM_ENDED = Cause(
    "program_ended",
    rf"(?P<how>{_EXIT}\d+\b|\bexited with (?:code|status)?\W*\d+|\b(?:return ?code|exitcode)\b[\s:=(]*-?\d+"
    rf"|Segmentation fault|core dumped|segfault at|trap invalid opcode"
    rf"|(?:CrashLoopBackOff|restarting failed container)(?!.*{_EXIT}\d))",
    _("Its program exited (%(how)s)."),
    _(
        "Check its logs: the last lines usually say why. A workspace's program has to keep running. If "
        "it crashed, a library that does not fit the GPU's driver is a frequent cause."
    ),
)

CAUSES = (
    Cause(
        "out_of_memory",
        r"OOM-?Killed|CONSTRAINT_MEMCG|out of memory|memory cgroup|invoked oom-killer|\bMemoryError\b|\bbad_alloc\b"
        r"|Unable to allocate [\d.]+ [KMGT]iB|(?<!mount error 12 = )cannot allocate memory",
        _("It used more memory than allowed and was stopped."),
        _("Start it with more memory, or load less data at once."),
    ),
    volumes.SETTINGS_MISSING,
    volumes.STALE,
    volumes.UNREADABLE,
    volumes.UNREACHED,
    volumes.MOUNT_FAILED,
    volumes.CLASS_MISSING,
    images.UNUSABLE,
    Cause(
        "start_program_missing",
        rf"executable file not found|\bexec: [^\n]*no such file or directory: unknown|\bstat \S+: no such file"
        rf"|{_EXIT}127\b"
        r"|\bexec: \S+: not found|(?<!fork/)\bexec /\S+: no such file|no command specified"
        r"|^/(?:usr/)?bin/\w*sh: [^\n]*not found|No module named '?(?:jupyter|notebook)",
        _("The image lacks a program that is needed to start."),
        _("Choose another image: it needs a shell, and Jupyter."),
    ),
    Cause(
        "image_user_unfit",
        r"runAsNonRoot and image (?:will run as root|has non-numeric user)|non-numeric user"
        rf"|(?:\bexec\b|OCI runtime|starting container).*(?:permission denied|operation not permitted)"
        # A shell that a person opened does not print its path.
        rf"|permission denied: unknown|{_EXIT}126\b|^/(?:usr/)?bin/\w*sh: [^\n]*: Permission denied"
        r"|Running as root is not recommended"
        r"|(?:Permission denied|EACCES)\b.*(?:/home/|/\.(?:local|jupyter|cache|config)\b)"
        r"|cannot create [^\n]*(?:/home/|/\.(?:local|jupyter|cache|config)\b)[^\n]*Permission denied",
        _(
            "The image does not work with its user: it requires root, or that user cannot run its "
            "program or write to the home directory."
        ),
        _("Choose another image. An admin can correct the user of this one in the catalogue."),
        "admin",
    ),
    Cause(
        "shared_memory_full",
        r"(?:insufficient|out of) shared memory|shared memory segment|allocate shared memory"
        r"|unable to write to file </torch_"
        r"|DataLoader worker .* killed by signal: Bus error"
        r"|posix_fallocate failed|failed to extend /dev/shm|no space left on device[^\n]*/dev/shm",
        _("Shared memory (/dev/shm) was full."),
        _(
            "Use fewer workers in the data loader, or start it with more memory: shared memory is a part of it."
        ),
    ),
    Cause(
        "volume_full",
        r"no space left on device|disk quota exceeded|\bENOSPC\b(?!: System limit)|database or disk is full",
        _("Its home, its disk or /tmp is full: nothing more can be written there."),
        _("Delete files that you do not need, also those in the trash and in caches, or ask for more space."),
    ),
    Cause(
        "too_many_processes",
        r"can't start new thread|(?:pthread_create|\bfork\b|thread creation)[^\n]*Resource temporarily unavailable"
        r"|\[Errno (?:11|24)\]|\bEMFILE\b|Too many open files|received 0 items of ancdata",
        _("It started more threads or processes, or opened more files, than allowed."),
        _(
            "Use fewer workers; OMP_NUM_THREADS and OPENBLAS_NUM_THREADS say how many threads libraries start. "
            "For open files, raise the limit with ulimit -n. An admin can raise the limits of the nodes."
        ),
    ),
    PROBE_FAILING,
    WORKERS_DISCONNECTED,
    gpus.ANY_FAULT,
    SERVER_NOT_REACHED,
    nodes.ANY_FAULT,
    Cause(
        "start_failed",
        r"RunContainerError|CreateContainer(?:Config)?Error|StartError|ContainerCannotRun"
        r"|failed to create (?:shim|containerd) task|OCI runtime|unable to create (?:a )?new parent process"
        r"|PostStartHookError|PreCreateHookError"
        r"|FailedCreatePodSandBox|Failed (?:to )?create pod sandbox|SandboxChanged|DeadlineExceeded"
        r"|failed to (?:create containerd|start) container|starting container process caused"
        r"|failed to generate (?:container|sandbox|spec)|failed to ensure that the pod|lifecycle hook .* failed"
        r"|cannot load seccomp profile|load apparmor profile"
        r"|failed to sync (?:secret|configmap) cache|container creat(?:e|ion) (?:error|failed)"
        r"|create (?:pod )?sandbox",
        _("The node could not prepare or start the container."),
        _("Berth retries automatically. If this continues, start it again, or tell an admin."),
        "admin",
    ),
    Cause(
        "killed",
        rf"{_EXIT}(?:137|143|130|-9)\b|\bSIG(?:KILL|TERM)\b|signal: killed|KernelRestarter: restarting"
        rf"|\b(?:return ?code|exit ?code|exitcode|signal)\b[\s:=(]*(?:-9|-15|9|15)\b"
        rf"|\bKernel (?:appears to have |has )?died\b",
        _("Something outside the workspace stopped its program."),
        _("If nobody stopped it, it most likely used more memory than allowed: start it with more memory."),
    ),
    PROGRAM_ENDED,
    # The last line of a program in Python that failed by itself.
    replace(
        PROGRAM_ENDED,
        pattern=r"(?:^|\n)(?P<how>(?:Import|ModuleNotFound|Syntax|Indentation|Name|Attribute|Type|Value|Key|Index"
        r"|Assertion"
        r"|UnboundLocal|NotImplemented|ZeroDivision|Recursion|FileNotFound)Error): ",
        of_its_source=True,
    ),
)
