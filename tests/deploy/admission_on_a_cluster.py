"""Try the cases of admission_cases.py on a real API server: `python -m tests.deploy.admission_on_a_cluster KUBECONFIG`.

The kubeconfig's user has to be an admin. The requests are made as an account of the namespace berth that may do
everything by RBAC, so what is refused is refused by deploy/kubernetes/admission.yaml.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from clusters.kinds import KINDS
from tests.deploy.admission import BERTH, MANIFEST, TENANT, Body, Request
from tests.deploy.admission_cases import LET_IN, PODS, REFUSED

SPACE = "berth-loose"  # a tenant's, without Pod Security, which would refuse some cases before the policies are asked


class Cluster:
    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig

    def ask(self, *words: str, body: Any = None, user: str = "") -> tuple[bool, str]:
        command = ["kubectl", f"--kubeconfig={self._kubeconfig}", *([f"--as={user}"] if user else []), *words]
        text = json.dumps(body) if body is not None else None
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.returncode == 0, (done.stdout + done.stderr).strip()

    def prepare(self) -> None:
        metadata = {"name": SPACE, "labels": TENANT}
        for body in (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth"}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
            *(
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": space}}
                for name in ("workspace", "admin", "default")
                for space in (SPACE, "default")
            ),
            *(
                {
                    "apiVersion": "node.k8s.io/v1",
                    "kind": "RuntimeClass",
                    "metadata": {"name": name},
                    "handler": "runc",
                }
                for name in {pod["spec"].get("runtimeClassName") for pod in PODS.values()} - {None}
            ),
        ):
            self.ask("apply", "-f", "-", body=body)
        self.ask("create", "clusterrolebinding", "stolen", "--clusterrole=cluster-admin", f"--user={BERTH}")
        _done, said = self.ask("apply", "-f", str(MANIFEST))
        print(said)
        time.sleep(5)  # a policy is in force some moments after it was made

    def attempt(self, request: Request) -> tuple[bool, str]:
        """Make what is there before as an admin, do the request as Berth, and remove what is left."""
        user = request.user
        space = SPACE if request.space.items() >= TENANT.items() else "default"
        there, wanted = self.placed(request.before, space), self.placed(request.body, space)
        first = there or wanted or {}
        kind, name = KINDS[first["kind"]], first["metadata"]["name"]
        within = ["-n", space] if kind.namespaced else []
        of = [f"{kind.plural}.{kind.group}" if kind.group else kind.plural, name]
        is_there = there is not None or request.operation == "CONNECT"
        if is_there:
            made, said = self.ask("apply", "-f", "-", body=first)
            if not made:
                return False, f"PREPARATION {said}"
        if request.operation == "CREATE":
            dry = ["--dry-run=server"] if request.is_dry else []
            outcome = self.ask("create", *dry, "-f", "-", body=wanted, user=user)
        elif request.operation == "DELETE":
            outcome = self.ask("delete", "--wait=false", *of, *within, user=user)
        elif request.operation == "CONNECT":
            outcome = self.ask("exec", name, *within, "--", "id", user=user)
        else:
            part = [f"--subresource={request.subresource}"] if request.subresource else []
            change = json.dumps(
                merge(there or {}, wanted or {}) or {"metadata": {"annotations": {"berth.dev/x": "1"}}}
            )
            if request.subresource:
                change = json.dumps({"status": {"phase": "Running"}})
            outcome = self.ask("patch", *of, *within, *part, "--type=merge", f"--patch={change}", user=user)
        if kind.plural == "pods":
            gone = '{"metadata":{"finalizers":null}}'
            self.ask("patch", *of, *within, "--type=merge", f"--patch={gone}")
        self.ask(
            "delete",
            "--now",
            "--ignore-not-found",
            f"--wait={kind.name == 'Namespace'}".lower(),
            *of,
            *within,
        )
        if kind.plural == "persistentvolumes":
            self.ask("patch", *of, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
        return outcome

    @staticmethod
    def placed(body: Body | None, space: str) -> Body | None:
        if body is None or not KINDS[body["kind"]].namespaced:
            return body
        return {**body, "metadata": {**body["metadata"], "namespace": space}}


def merge(before: Any, after: Any) -> Body:
    """Return the JSON merge patch from one object to the other."""
    patch: Body = {key: None for key in before if key not in after}
    for key, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            if inner := merge(before[key], value):
                patch[key] = inner
        elif before.get(key) != value:
            patch[key] = value
    return patch


def main(kubeconfig: str) -> int:
    cluster, wrong = Cluster(kubeconfig), 0
    cluster.prepare()
    cases = {**{name: (one, None) for name, one in LET_IN.items()}, **REFUSED}
    for name, (request, words) in cases.items():
        done, said = cluster.attempt(request)
        if name == "anything of somebody else":  # RBAC refuses a stranger, and no policy of Berth's
            right = "ValidatingAdmissionPolicy" not in said
        elif words is None:
            right = done
        else:
            right = not done and words in said
        wrong += not right
        last = said.splitlines()[-1] if said else ""
        print(f"{'ok   ' if right else 'WRONG'} {'let in ' if done else 'refused'} {name}: {last[:400]}")
    print(f"{len(cases)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
