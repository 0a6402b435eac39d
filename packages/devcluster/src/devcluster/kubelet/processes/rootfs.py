"""File system of a process pod: this machine's programs read-only, its image, and little else. Pure."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.kubelet.network import names
from devcluster.kubelet.runtime import ContainerPlan, Mount
from devcluster.nodes import Image

SHM_BYTES = 64 * 2**20
_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC_FOLDERS = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "pki",
    "profile.d",
    "ssl",
    "terminfo",
    "ld.so.conf.d",
)
_ETC_FILES = (
    "bash.bashrc",
    "debian_version",
    "gai.conf",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "locale.alias",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "profile",
    "protocols",
    "resolv.conf",
    "services",
    "timezone",
    "ssh/moduli",
    "ssh/ssh_config",
)
FOLDERS = (
    "/proc",
    "/dev",
    "/dev/pts",
    "/dev/shm",
    "/etc/ssh",
    "/tmp",
    "/var/tmp",
    "/run",
    "/home",
    "/root",
    "/usr",
    "/opt",
)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Interpreter:
    """Real place of a venv's python: its own prefixes, and the links on the way to them."""

    prefixes: list[Path]
    links: dict[Path, Path]

    @classmethod
    def of(cls, root: Path) -> "Interpreter":
        """Find a venv's python. A link may lie in a home (~/.local/bin/python3): the pod sees nothing beside it."""
        python, hops = root / "bin" / "python", dict[Path, Path]()
        while python.is_symlink():
            hops[python] = python.readlink()
            python = Path(os.path.normpath(python.parent / hops[python]))
        known = [root, Path("/usr")]
        prefixes = []
        for binary in (python, python.resolve()):  # folders may be links too
            prefix = binary.parent.parent
            if binary.parent.name == "bin" and prefix != Path("/") and not _below(prefix, known):
                prefixes.append(prefix)
                known.append(prefix)
        return cls(prefixes, {at: to for at, to in hops.items() if not _below(at, known)})


def _below(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _bind(
    source: Path | str, target: Path | str, read_only: bool = True, translate: bool = False, sub: str = ""
) -> dict[str, Any]:
    how = {"read_only": read_only, "translate": translate, "sub": sub}
    return {"source": str(source), "target": str(target), **how}


def _memory(target: str, size_bytes: int, uid: int, gid: int, mode: str) -> dict[str, Any]:
    size = f",size={size_bytes}" if size_bytes else ""
    options = f"mode={mode},uid={uid},gid={gid}{size}"
    return {"source": None, "target": target, "read_only": False, "options": options, "translate": False}


def links() -> dict[str, str]:
    found = {f"/{n}": str(Path(f"/{n}").readlink()) for n in _TOP if Path(f"/{n}").is_symlink()}
    return found | {
        "/dev/ptmx": "pts/ptmx",
        "/dev/fd": "/proc/self/fd",
        "/dev/stdin": "/proc/self/fd/0",
        "/dev/stdout": "/proc/self/fd/1",
        "/dev/stderr": "/proc/self/fd/2",
        "/etc/hosts": f"{names.FOLDER}/{names.FILE}",
        "/etc/mtab": "/proc/self/mounts",
        "/var/run": "/run",
    }


def files(plan: ContainerPlan, nameserver: str | None = None) -> dict[str, str]:
    """Return small files of /etc: copies of this machine's, and those that name the pod and its user."""
    found = {}
    for name in _ETC_FILES:
        path = Path("/etc") / name
        try:
            found[f"/etc/{name}"] = path.read_text(errors="surrogateescape") if name != "ld.so.cache" else ""
        except OSError:
            continue
    found.pop("/etc/ld.so.cache", None)
    if nameserver:
        kept = [n for n in found.get("/etc/resolv.conf", "").splitlines() if not n.startswith("nameserver")]
        found["/etc/resolv.conf"] = "\n".join([f"nameserver {nameserver}", *kept, ""])
    image = plan.image
    found["/etc/passwd"] = (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{image.user}:x:{plan.uid}:{plan.gid}:{image.user}:{image.home}:/bin/bash\n"
        "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
    found["/etc/group"] = f"root:x:0:\n{image.user}:x:{plan.gid}:\nnogroup:x:65534:\n"
    found["/etc/hostname"] = plan.hostname + "\n"
    return found


def mounts(plan: ContainerPlan, scratch: Path, hosts: Path, uid: int, gid: int) -> list[dict[str, Any]]:
    """Return all mounts, parents before children; `uid` and `gid` own the memory disks on this machine."""
    # /tmp comes first: an image may lie below it.
    found = [
        _bind(scratch / "tmp", "/tmp", read_only=False),
        _bind(scratch / "tmp", "/var/tmp", read_only=False),
    ]
    found.append(_bind("/usr", "/usr"))
    found += [
        _bind(f"/{n}", f"/{n}") for n in _TOP if Path(f"/{n}").is_dir() and not Path(f"/{n}").is_symlink()
    ]
    found += [_bind(f"/etc/{n}", f"/etc/{n}") for n in _ETC_FOLDERS if Path(f"/etc/{n}").is_dir()]
    if Path("/etc/ld.so.cache").exists():
        found.append(_bind("/etc/ld.so.cache", "/etc/ld.so.cache"))
    found.append(_bind(hosts, names.FOLDER))
    found += _image(plan.image)
    asked = {os.path.normpath(m.target) for m in plan.mounts}
    if plan.image.home not in asked:
        found.append(_bind(scratch / "home", plan.image.home, read_only=False))
    if "/dev/shm" not in asked:
        found.append(_memory("/dev/shm", SHM_BYTES, uid, gid, "1777"))
    for wanted in sorted(plan.mounts, key=lambda m: os.path.normpath(m.target).count("/")):
        found.append(_wanted(wanted, uid, gid))
    return found


def _wanted(mount: Mount, uid: int, gid: int) -> dict[str, Any]:
    target = os.path.normpath(mount.target)
    if mount.source is None:
        return _memory(target, mount.size_bytes, uid, gid, "1777")
    return _bind(mount.source, target, mount.read_only, mount.disk, mount.sub)


def _image(image: Image) -> list[dict[str, Any]]:
    """Return the mounts of an image and its interpreter, at the paths that they have on this machine."""
    if image.root is None:
        return []
    python = Interpreter.of(image.root)
    paths = [path for path in (image.root, *python.prefixes) if not path.is_relative_to("/usr")]
    links = [{"target": str(at), "link": str(to)} for at, to in python.links.items()]
    return [*(_bind(path, path) for path in paths), *links]


def environment(plan: ContainerPlan) -> dict[str, str]:
    path = f"{plan.image.root}/bin:{SYSTEM_PATH}" if plan.image.root else SYSTEM_PATH
    base = {"PATH": path, "HOME": plan.image.home, "HOSTNAME": plan.hostname, "LANG": "C.UTF-8"}
    return base | dict(plan.env)
