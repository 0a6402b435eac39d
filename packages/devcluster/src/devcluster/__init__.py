"""devcluster: a Kubernetes API on this machine whose pods are local processes, for trials and tests.

The unmodified `kubernetes` client, kubectl and raw list+watch use it like a real cluster. Tests compare its answers
with recorded answers of Kubernetes 1.36; a difference is a bug here.

    python -m devcluster --state-dir DIR --port 0 --nodes FILE.yaml --pods process|played --kubeconfig OUT.yaml \
        [--image REF=ROOT …]

It binds 127.0.0.1 only, over TLS (kubectl sends no token otherwise) with a certificate and a token of its own in DIR,
prints one line when it is ready, and ends on SIGTERM or SIGINT within two seconds, as a power loss would end a node:
files stay, processes end. Started again on the same DIR, it continues, even after SIGKILL; pods that ran are Failed
("Pod was terminated in response to imminent node shutdown."), and their StatefulSets create them again.

Structure, from the bottom up:

- `store` objects in memory and SQLite, numbered changes; `resources` kinds; `values/` names, selectors, quantities
- `typed/` the types of all kinds (`schema` reads `types.json`, made by `tools/typesfile.py`); `fields`, `apply`,
  `patches` ownership of fields, server-side apply and the other patches
- `rules/` defaults (`defaults`) and refusals with their words (`validation`, `admission`, `podsecurity`, `quota` and
  rules of single kinds)
- `access/` identities (`authentication`, `tokens`) and rights (`rbac`, `escalation`; `roles`, `reviews`)
- `api` the verbs on objects, for all callers; `errors` refusals; `events`; `eviction`
- `serving/` HTTP: `server` paths and verbs; reading requests (`requests`, `options`, `bodies`, `decoding`, `protobuf`);
  `listing`, `watching`, `views`, `discovery`, `openapi`; subresources of objects (`subresources`, `streaming`)
- `display/` the tables that kubectl prints
- `faults/` failures on demand (`registry`): of calls, volumes, pulls and pods; `fleet` the nodes and their faults
- `gpuplay/` simulated GPUs: their pods, their use, their faults, and simulated agents that report them
- `metering` the use of pods and nodes, which `serving/metrics` reports as metrics-server does
- `controllers/` one key at a time, with a fresh read of all objects (`base`)
  - `nodes/`: `lifecycle` their kubelets' silence, `evictions` by taints, `podgc` pods whose node is gone
  - `workloads/`: `base`, `ownership`, `replicas`, `backoff` shared parts; `replicasets`; `deployments` by `rollouts`;
    `statefulsets` by `stateful_pods` and `revisions`; `jobs` by `job_rules`; `disruptions`
  - `storage/`: `volumes` and `binding` the volume of each claim; `provisioner` by `sources`, `resizer`, `snapshots`,
    `attachments` the drivers' work, in the `background`; the top-level `storage` lists drivers and classes
  - and `namespaces`, `garbage`, `quotas`, `services` by `proxy`, `clusterroles`
- `scheduling/` places pods: `filters` requirements of a pod, by `fitting`, `spreading` and `volumebinding`;
  `preemption`, `priorities`; `hami` for the scheduler of that name
- `kubelet/`: `agent` the kubelets of all nodes, `worker` one pod, `host` what all pods of this machine share;
  `admission` rejections; `status` of pods; `runtime` the protocol of the two runtimes, `played` the simulated one
  - `nodes/`: `reports` status of nodes by `node_status`, `pressure` evictions
  - `containers/`: `life` of one container, by `pulling`, `images`, `plans`, `config`, `probes` and `backoff`; `actions`
    of probes and hooks; `logs`
  - `storage/`: `mounting`, `disks`, `volumes`, `podtokens`, `ephemeral` files of pods
  - `processes/`: `process` the runtime of local processes; `sandbox` a container's first process; `sessions` further
    commands in a container; `rootfs`, `seccomp`, `users`, `cgroups`, `namespaces` its files, system calls, uid and
    limits; `usage` of CPU and memory
  - `network/`: `podnetwork`, `hub`, `outside` a network for pods alone, which the top-level `network` reaches;
    `policies` NetworkPolicies as rules of nftables, loaded again by `enforcing`; `names` the /etc/hosts of each pod
- `nodes` the node file, `gpus` labels and resources of GPUs; `cluster` assembles all; `instance` the state directory;
  `memory` short pauses of Python's garbage collector
- `testing/` helpers for tests, of other projects too: `cluster` a devcluster as a process, `kube` a small HTTP client,
  `waiting`, `many` thousands of pods, `gpubench` GPUs without a cluster

Process pods (root): a uid of their own far from every person's, mapped to the image's user by a user namespace; own
mount, pid, uts, ipc and network namespaces, no capability, a seccomp filter. Disks are loop-mounted ext4 files of their
size, id-mapped, mounted in a mount namespace that ends with devcluster. Without root: user namespaces, folders as disks
without a size; pods share the user's uid and are separated by their namespaces. A disk grows while it is mounted if the
kernel allows it (CAP_SYS_RESOURCE), else once its pod has stopped.

Pods have their own network if slirp4netns is installed: connections to a pod are made by `network`, never by a plain
socket. Without slirp4netns pods share this machine's network: a process must bind its pod's address (POD_IP from
status.podIP), and a wildcard bind takes the port from every other pod.

NetworkPolicies are enforced in each pod's own network if nft is installed; traffic of the gateway (probes, Services)
always passes. Otherwise they are stored only.

Pods find Services and pods of their namespace by name, in an /etc/hosts of their own; there is no DNS server.

Not supported: DaemonSets are stored only; no attach or port-forward, and exec by WebSockets alone; no probes by gRPC,
no ephemeral containers.
"""
