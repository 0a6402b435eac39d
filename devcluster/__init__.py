"""devcluster: a Kubernetes API on this machine whose pods are local processes, for trials and tests.

The unmodified `kubernetes` client, kubectl and raw list+watch use it as they use a real cluster. Its answers are held
against recorded answers of Kubernetes 1.36; where they differ, this is wrong.

    python -m devcluster --state-dir DIR --port 0 --nodes FILE.yaml --pods process|played --kubeconfig OUT.yaml \
        [--image REF=ROOT …]

It binds 127.0.0.1 only, over TLS (kubectl sends no token otherwise) with a certificate and a token of its own in DIR,
prints one line when it is ready, and ends on SIGTERM or SIGINT within two seconds, as a power loss would end a node:
files stay, processes go. Started again on the same DIR it goes on, also after SIGKILL; pods that ran are Failed
("Pod was terminated in response to imminent node shutdown."), and their StatefulSets make them anew.

How it is built, from the bottom up:

- `store` objects in memory and SQLite, numbered changes; `resources` kinds; `names`, `selectors`, `quantity`
- `typed/` the types of all kinds (`schema` reads `types.json`, made by `typesfile`); `fields`, `apply`, `patches` who
  owns which field, server-side apply and the other patches
- `rules/` what is filled in (`defaults`) and what is refused in which words (`validation`, `admission`, `podsecurity`,
  `quota` and rules of single kinds)
- `access/` who asks (`authentication`, `tokens`) and what they may (`rbac`, `escalation`; `roles`, `reviews`)
- `api` the verbs on objects, whoever asks; `errors` refusals; `events`; `eviction`
- `serving/` HTTP: `server` paths and verbs; reading requests (`requests`, `options`, `bodies`, `decoding`, `protobuf`);
  `listing`, `watching`, `views`, `discovery`, `openapi`; what hangs below objects (`subresources`, `streaming`)
- `display/` the tables that kubectl prints
- `faults` what breaks on demand: `callfaults`, `volumefaults`, `kubelet/pullfaults`, `kubelet/podfaults`; `fleet` the
  nodes, what ails them
- `gpuplay/` GPUs that are played: who has which, what pods do there, what ails them, and simulated agents that tell
- `metering` what pods and nodes use, which `serving/metrics` tells as metrics-server does
- `controllers/` what makes the cluster move; one key at a time, reading everything anew (`base`)
  - of nodes: `nodes` who is heard, `evictions` by taints, `podgc` pods whose node is gone
  - of pods: `workloads`, `ownership`, `replicas`, `backoff` what they share; `replicasets`; `deployments` by
    `rollouts`; `statefulsets` by `stateful_pods` and `revisions`; `jobs` by `job_rules`; `disruptions`
  - of storage: `volumes` and `binding` which claim gets which volume; `provisioner`, `resizer`, `snapshots`,
    `attachments` what drivers do; `storage` above says which drivers and classes there are
  - and `namespaces`, `garbage`, `quotas`, `services`, `clusterroles`
- `scheduling/` places pods: `filters` what a pod asks of nodes, by `fitting`, `spreading` and `volumebinding`;
  `preemption`, `priorities`; `hami` for the scheduler of that name
- `kubelet/` nodes: `reports` what they say, `pressure` whom they evict, `admission` whom they reject
  - pods: `worker` one pod, `containers` one container, by `pulling`, `plans`, `probes` and `backoff`; `actions` what
    probes and hooks do; `status` what is told, `logs` what is kept, `usage` what it uses;
    `mounting`, `disks`, `volumes`, `ephemeral` what pods write; `played` and `process` the two runtimes; `sessions`
    further commands in a container
  - a process pod from inside: `sandbox` a container's first process; `rootfs`, `seccomp`, `users` what it sees, may
    call and is; `podnetwork`, `hub`, `outside` a network of its own, which `network` above reaches
- `nodes` the node file, `gpus` what nodes announce; `cluster` puts it together; `instance` the state directory;
  `memory` no long pauses of Python's garbage collector

Process pods (root): a uid of its own far from every person's, seen inside as the image's user by a user namespace;
own mount, pid, uts, ipc and network namespaces, no capability, a seccomp filter. Disks are loop-mounted ext4 files of
their size, id-mapped, mounted in a mount namespace that goes with devcluster. Without root: user namespaces, folders
as disks without a size, pods share the user's uid and are kept apart by their namespaces. A disk grows while it is
mounted where the kernel allows it (CAP_SYS_RESOURCE), else once its pod has stopped.

Their network is their own where slirp4netns is installed: what connects to a pod does so through `network`, never by
a socket of its own. Elsewhere pods share this machine's, a process must bind its pod's address (POD_IP from
status.podIP), and a wildcard bind takes the port from every other pod.

What it does not do: NetworkPolicies are stored, not enforced; DaemonSets are stored only; no
attach or port-forward, and exec by WebSockets alone; no probes by gRPC, no ephemeral containers.
"""
