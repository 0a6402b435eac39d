"""Runner of kubectl as a person uses it, in its own namespace."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from devcluster.testing.kube import Obj

PROGRAM = os.environ.get("KUBECTL") or shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(PROGRAM is None, reason="no kubectl on this machine; KUBECTL names one")


class Kubectl:
    """Callable with kubectl's arguments that returns its output; `fails` returns its error message instead."""

    def __init__(self, kubeconfig: Path, home: Path, namespace: str):
        self.namespace, self._home = namespace, home
        self._head = [str(PROGRAM), f"--kubeconfig={kubeconfig}", f"--namespace={namespace}"]
        self._head += [f"--cache-dir={home / 'cache'}"]
        self._environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC"}

    def run(self, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._head, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            env=self._environment | environment,
        )

    def __call__(self, *arguments: str, given: str = "", **environment: str) -> str:
        done = self.run(*arguments, given=given, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *arguments: str, given: str = "") -> str:
        done = self.run(*arguments, given=given)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a kubectl that keeps running, such as a watch; the caller ends it."""
        return subprocess.Popen(
            [*self._head, *arguments], stdout=subprocess.PIPE, text=True, env=self._environment
        )

    def apply(self, *objects: Obj, more: tuple[str, ...] = ()) -> str:
        return self("apply", "-f", "-", *more, given=yaml.safe_dump_all(objects))


def until_line(process: subprocess.Popen[str], *wanted: str) -> str:
    """Return the first line of a running kubectl with all these words; pytest's timeout limits the wait."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if all(word in line for word in wanted):
            return line
    raise AssertionError(f"{wanted} not in {seen}")


def columns(table: str) -> list[list[str]]:
    """Return the cells of a printed table, separated by two spaces."""
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in table.splitlines()]


def config_map(name: str = "settings", **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def claim(name: str = "home") -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def service(name: str = "ws") -> Obj:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8888}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
