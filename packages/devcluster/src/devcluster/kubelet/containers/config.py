"""Environment, command and user of a container, from the pod's spec and the objects that it names."""

import base64
import re
import shlex
from collections.abc import Callable

from devcluster.kubelet.runtime import CannotRun
from devcluster.nodes import Image
from devcluster.resources import CONFIG_MAP, SECRET, Kind, Obj
from devcluster.values.quantity import whole

Lookup = Callable[[Kind, str], Obj | None]
"""Finds an object of the pod's namespace by name."""

_DOLLAR = re.compile(r"\$(?:\$|\(([^)]*)\))")
CONFIG_ERROR = "CreateContainerConfigError"


def expand(text: str, env: dict[str, str]) -> str:
    """Replace `$(NAME)` by its value if known, and `$$` by a dollar."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] is None else env.get(match[1], match[0])

    return _DOLLAR.sub(value, text)


def data_of(kind: Kind, obj: Obj) -> dict[str, bytes]:
    data = obj.get("data") or {}
    if kind is SECRET:
        return {k: base64.b64decode(v or "") for k, v in data.items()}
    binary = {k: base64.b64decode(v) for k, v in (obj.get("binaryData") or {}).items()}
    return {k: v.encode() for k, v in data.items()} | binary


def environment(pod: Obj, container: Obj, address: str, lookup: Lookup) -> dict[str, str]:
    env: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix", "")
        for key, value in _source(source, lookup).items():
            env[prefix + key] = value.decode(errors="replace")
    for entry in container.get("env") or []:
        if "valueFrom" in entry:
            found = _reference(pod, container, entry["valueFrom"], address, lookup)
            if found is not None:
                env[entry["name"]] = found
        else:
            env[entry["name"]] = expand(entry.get("value", ""), env)
    return env


def _source(source: Obj, lookup: Lookup) -> dict[str, bytes]:
    for member, kind in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
        if ref := source.get(member):
            obj = lookup(kind, ref["name"])
            if obj is None and not ref.get("optional"):
                raise CannotRun(CONFIG_ERROR, f'{kind.kind.lower()} "{ref["name"]}" not found')
            return data_of(kind, obj) if obj else {}
    return {}


def _reference(pod: Obj, container: Obj, source: Obj, address: str, lookup: Lookup) -> str | None:
    if ref := source.get("fieldRef"):
        return field(pod, ref["fieldPath"], address)
    if ref := source.get("resourceFieldRef"):
        part, _, name = ref["resource"].partition(".")
        return str(whole(container.get("resources", {}).get(part, {}).get(name, "0")))
    for member, kind in (("secretKeyRef", SECRET), ("configMapKeyRef", CONFIG_MAP)):
        if ref := source.get(member):
            obj = lookup(kind, ref["name"])
            data = data_of(kind, obj) if obj else {}
            if ref["key"] in data:
                return data[ref["key"]].decode(errors="replace")
            if ref.get("optional"):
                return None
            word, name = kind.kind.lower(), ref["name"]
            if obj is None:
                raise CannotRun(CONFIG_ERROR, f'{word} "{name}" not found')
            where = f"{pod['metadata']['namespace']}/{name}"
            raise CannotRun(CONFIG_ERROR, f"couldn't find key {ref['key']} in {kind.kind} {where}")
    return None


def field(pod: Obj, path: str, address: str) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    known = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": "127.0.0.1",
    }
    if path in known:
        return str(known[path])
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if match:
        return str((meta.get(match.group(1)) or {}).get(match.group(2), ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = sorted((meta.get(path.partition(".")[2]) or {}).items())
        return "\n".join(f'{k}="{v}"' for k, v in pairs)
    return ""


def user(pod: Obj, container: Obj, image: Image) -> tuple[int, int, list[int]]:
    """Return uid, gid and further groups; refuse a pod that must not run as root but would."""
    pod_level, own = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    uid = own.get("runAsUser", pod_level.get("runAsUser", image.uid))
    gid = own.get("runAsGroup", pod_level.get("runAsGroup", image.gid))
    must_not = own.get("runAsNonRoot", pod_level.get("runAsNonRoot", False))
    if must_not and not uid:
        meta = pod["metadata"]
        where = f'(pod: "{meta["name"]}_{meta["namespace"]}({meta["uid"]})", container: {container["name"]})'
        asked = own.get("runAsUser", pod_level.get("runAsUser"))
        breaks = "container has runAsNonRoot and image will run as root"
        if asked is not None:
            breaks = "container's runAsUser breaks non-root policy"
        raise CannotRun(CONFIG_ERROR, f"{breaks} {where}")
    groups = [
        g for g in (pod_level.get("fsGroup"), *(pod_level.get("supplementalGroups") or [])) if g is not None
    ]
    return uid or 0, gid, groups


def command(container: Obj, image: Image, env: dict[str, str]) -> list[str]:
    if image.says:
        said = " ".join(shlex.quote(line) for line in image.says)
        return ["/bin/sh", "-c", f"printf '%s\\n' {said}; exit {image.exits}"]
    parts = list(container.get("command") or [])
    if not parts and not container.get("args"):
        return list(image.command)
    parts = (parts or list(image.command)) + list(container.get("args") or [])
    return [expand(p, env) for p in parts]
