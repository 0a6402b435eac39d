"""Volumes of a pod as folders of this machine: the kubelet's own files, and the mounts of the disks.

Secrets and ConfigMaps are written as the real kubelet does it: a new folder, then one rename of `..data`, so that a
running pod sees the whole change or none of it.
"""

import os
import shutil
import time
from pathlib import Path

from devcluster.kubelet.containers import config
from devcluster.kubelet.runtime import Mount
from devcluster.kubelet.storage.podtokens import PodTokens
from devcluster.resources import CONFIG_MAP, SECRET, Kind, Obj
from devcluster.storage import claim_name, claims_of
from devcluster.values.quantity import whole


class NotReady(Exception):
    """Failure to set up a volume for now; the message is the kubelet's."""


class PodVolumes:
    """Volumes of a pod: `folder` has the kubelet's files, `scratch` emptyDirs, `disks` the mounted claims by name."""

    def __init__(
        self,
        pod: Obj,
        folder: Path,
        scratch: Path,
        lookup: config.Lookup,
        owner: int | None,
        tokens: PodTokens,
    ):
        self._pod, self._folder, self._scratch, self._lookup = pod, folder, scratch, lookup
        self._owner, self._tokens = owner, tokens
        self.disks: dict[str, Path] = {}

    def claims(self) -> list[str]:
        return claims_of(self._pod)

    def _volumes(self) -> list[Obj]:
        return self._pod["spec"].get("volumes") or []

    def message_file(self, container: str, attempt: int) -> Path:
        """Return the file of a container's termination message, which counts as the container's own use."""
        return self._scratch / ".container" / f"{container}.{attempt}.message"

    def write(self, address: str) -> None:
        """Write or renew all files that come from the API."""
        for volume in self._volumes():
            files = self._files(volume, address)
            if files is not None:
                mode = self._source(volume).get("defaultMode", 420)
                _replace(self._folder / volume["name"], files, mode, self._owner)
            elif "emptyDir" in volume and volume["emptyDir"].get("medium") != "Memory":
                self._empty_dir(volume["name"])

    def _empty_dir(self, name: str) -> None:
        path = self._scratch / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
        if self._owner is not None:
            os.chown(path, self._owner, self._owner)

    @staticmethod
    def _source(volume: Obj) -> Obj:
        found: Obj = next((v for k, v in volume.items() if k != "name"), {})
        return found

    def _files(self, volume: Obj, address: str) -> dict[str, tuple[bytes, int | None]] | None:
        """Return path → (content, own mode) of a volume that the kubelet writes; None for another kind."""
        name = volume["name"]
        if secret := volume.get("secret"):
            return self._from_object(name, SECRET, secret["secretName"], secret)
        if config_map := volume.get("configMap"):
            return self._from_object(name, CONFIG_MAP, config_map["name"], config_map)
        if downward := volume.get("downwardAPI"):
            return self._downward(downward, address)
        if projected := volume.get("projected"):
            files: dict[str, tuple[bytes, int | None]] = {}
            generated = name.startswith("kube-api-access-")
            for source in projected.get("sources") or []:
                if part := source.get("secret"):
                    files |= self._from_object(name, SECRET, part["name"], part)
                elif part := source.get("configMap"):
                    optional = {"optional": True} if generated else {}
                    files |= self._from_object(name, CONFIG_MAP, part["name"], part | optional)
                elif part := source.get("downwardAPI"):
                    files |= self._downward(part, address)
                elif part := source.get("serviceAccountToken"):
                    files[part["path"]] = (self._tokens.current(part).encode(), None)
            return files
        return None

    def _downward(self, source: Obj, address: str) -> dict[str, tuple[bytes, int | None]]:
        found = {}
        for item in source.get("items") or []:
            if "fieldRef" in item:
                value = config.field(self._pod, item["fieldRef"]["fieldPath"], address)
                found[item["path"]] = (value.encode(), item.get("mode"))
        return found

    def _from_object(
        self, volume: str, kind: Kind, name: str, source: Obj
    ) -> dict[str, tuple[bytes, int | None]]:
        obj = self._lookup(kind, name)
        if obj is None:
            if source.get("optional"):
                return {}
            raise NotReady(
                f'MountVolume.SetUp failed for volume "{volume}" : {kind.kind.lower()} "{name}" not found'
            )
        data = config.data_of(kind, obj)
        if not source.get("items"):
            return {key: (value, None) for key, value in data.items()}
        found = {}
        for item in source["items"]:
            if item["key"] not in data:
                if source.get("optional"):
                    continue
                raise NotReady(
                    f'MountVolume.SetUp failed for volume "{volume}" : references non-existent {kind.kind.lower()} key:'
                    f" {item['key']}"
                )
            found[item["path"]] = (data[item["key"]], item.get("mode"))
        return found

    def mounts(self, container: Obj) -> list[Mount]:
        volumes = {v["name"]: v for v in self._volumes()}
        return [self._mount(volumes[m["name"]], m) for m in container.get("volumeMounts") or []]

    def _mount(self, volume: Obj, mount: Obj) -> Mount:
        target, read_only = mount["mountPath"], bool(mount.get("readOnly"))
        sub = mount.get("subPath", "")
        if name := claim_name(self._pod, volume):
            read_only = read_only or bool((volume.get("persistentVolumeClaim") or {}).get("readOnly"))
            return Mount(target, self.disks[name], read_only, disk=True, sub=sub)
        if (empty := volume.get("emptyDir")) is not None:
            if empty.get("medium") == "Memory":
                size = whole(empty.get("sizeLimit", "0")) or self._memory_bytes()
                return Mount(target, None, read_only, size_bytes=size)
            return Mount(target, self._scratch / volume["name"], read_only, sub=sub)
        if host := volume.get("hostPath"):
            return Mount(target, Path(host["path"]), read_only, sub=sub)
        folder = self._folder / volume["name"]
        # A subPath is resolved once: it does not follow later changes, as on a real kubelet.
        return Mount(target, (folder / sub).resolve() if sub else folder, read_only=True)

    def _memory_bytes(self) -> int:
        """Return the bytes of memory that the pod's containers may use together; 0 if one has no limit."""
        limits = [
            c.get("resources", {}).get("limits", {}).get("memory") for c in self._pod["spec"]["containers"]
        ]
        return sum(map(whole, limits)) if all(limits) else 0


def _replace(folder: Path, files: dict[str, tuple[bytes, int | None]], mode: int, owner: int | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    current = folder / "..data"
    if current.exists() and _content(current) == {k: v for k, (v, _) in files.items()}:
        return
    version = _write_version(folder, files, mode, owner)
    old = current.readlink() if current.is_symlink() else None
    fresh = folder / "..data_tmp"
    fresh.symlink_to(version.name)
    fresh.replace(current)
    for top in {Path(name).parts[0] for name in files}:
        link = folder / top
        if not link.is_symlink():
            link.symlink_to(Path("..data") / top)
    for path in folder.iterdir():
        if path.is_symlink() and not path.name.startswith("..") and not path.exists():
            path.unlink()
    if old:
        shutil.rmtree(folder / old, ignore_errors=True)


def _write_version(
    folder: Path, files: dict[str, tuple[bytes, int | None]], mode: int, owner: int | None
) -> Path:
    version = folder / f"..{time.strftime('%Y_%m_%d_%H_%M_%S')}.{time.time_ns() % 10**9}"
    for name, (content, own_mode) in files.items():
        path = version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        # fsGroup: the pod's group reads what the kubelet, the owner, wrote.
        path.chmod((own_mode if own_mode is not None else mode) | (0o440 if owner is not None else 0))
    version.mkdir(exist_ok=True)
    if owner is not None:
        for path in [folder, version, *version.rglob("*")]:
            os.chown(path, 0, owner)
    for path in [folder, version, *(p for p in version.rglob("*") if p.is_dir())]:
        path.chmod(0o755)
    return version


def _content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
