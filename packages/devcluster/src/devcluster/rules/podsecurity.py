"""Pod Security admission: the levels `baseline` and `restricted`, with the admission plugin's words."""

from collections.abc import Iterator

from devcluster.resources import Obj

ENFORCE = "pod-security.kubernetes.io/enforce"
_BASELINE_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip
_RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip


def refusal(level: str, version: str, spec: Obj) -> str | None:
    """Return why a namespace of this level refuses the pod, or None."""
    found: list[str] = []
    if level in ("baseline", "restricted"):
        found += _baseline(spec, level)
    if level == "restricted":
        found += _restricted(spec)
    if not found:
        return None
    return f'violates PodSecurity "{level}:{version or "latest"}": {", ".join(found)}'


def _containers(spec: Obj) -> list[Obj]:
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def _named(word: str, names: list[str]) -> str:
    quoted = ", ".join(f'"{n}"' for n in names)
    return f"{word} {quoted}" if len(names) == 1 else f"{word}s {quoted}"


def _security(container: Obj) -> Obj:
    return container.get("securityContext") or {}


def _baseline(spec: Obj, level: str) -> Iterator[str]:
    host = [n for n in ("hostNetwork", "hostPID", "hostIPC") if spec.get(n)]
    if host:
        yield f"host namespaces ({', '.join(f'{n}=true' for n in host)})"
    privileged = [c["name"] for c in _containers(spec) if _security(c).get("privileged")]
    if privileged:
        yield f"privileged ({_named('container', privileged)} must not set securityContext.privileged=true)"
    for c in _containers(spec):
        extra = set((_security(c).get("capabilities") or {}).get("add") or []) - _BASELINE_CAPABILITIES
        if extra and level == "baseline":
            names = ", ".join(f'"{e}"' for e in sorted(extra))
            who = _named("container", [c["name"]])
            yield f"non-default capabilities ({who} must not include {names} in securityContext.capabilities.add)"
    if level == "baseline":
        hosts = [v["name"] for v in spec.get("volumes") or [] if "hostPath" in v]
        if hosts:
            yield f"hostPath volumes ({_named('volume', hosts)})"


def _restricted(spec: Obj) -> Iterator[str]:
    pod = spec.get("securityContext") or {}
    containers = _containers(spec)
    for volume in spec.get("volumes") or []:
        kinds = sorted(set(volume) - {"name"} - _RESTRICTED_VOLUMES)
        if kinds:
            yield (
                f'restricted volume types (volume "{volume["name"]}" uses restricted volume type "{kinds[0]}")'
            )
    escalating = [c["name"] for c in containers if _security(c).get("allowPrivilegeEscalation") is not False]
    if escalating:
        yield (
            f"allowPrivilegeEscalation != false ({_named('container', escalating)} must set"
            " securityContext.allowPrivilegeEscalation=false)"
        )
    capable = [
        c["name"]
        for c in containers
        if "ALL" not in ((_security(c).get("capabilities") or {}).get("drop") or [])
    ]
    if capable:
        yield (
            f"unrestricted capabilities ({_named('container', capable)} must set"
            ' securityContext.capabilities.drop=["ALL"])'
        )
    yield from _run_as(pod, containers)
    ok = ("RuntimeDefault", "Localhost")
    pod_profile = (pod.get("seccompProfile") or {}).get("type")
    loose = [
        c["name"]
        for c in containers
        if (_security(c).get("seccompProfile") or {}).get("type", pod_profile) not in ok
    ]
    if loose:
        yield (
            f"seccompProfile (pod or {_named('container', loose)} must set securityContext.seccompProfile.type to"
            ' "RuntimeDefault" or "Localhost")'
        )


def _run_as(pod: Obj, containers: list[Obj]) -> Iterator[str]:
    rooty = [
        c["name"] for c in containers if _security(c).get("runAsNonRoot", pod.get("runAsNonRoot")) is not True
    ]
    if rooty:
        yield (
            f"runAsNonRoot != true (pod or {_named('container', rooty)} must set securityContext.runAsNonRoot=true)"
        )
    if pod.get("runAsUser") == 0:
        yield "runAsUser=0 (pod must not set runAsUser=0)"
    zero = [c["name"] for c in containers if _security(c).get("runAsUser") == 0]
    if zero:
        yield f"runAsUser=0 ({_named('container', zero)} must not set runAsUser=0)"
