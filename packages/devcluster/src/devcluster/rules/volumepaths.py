"""Paths and names in a pod's volumes: none may lead out of the volume."""

from collections.abc import Iterator

from devcluster.errors import Cause, invalid_value, not_supported, required
from devcluster.resources import Obj
from devcluster.values.names import LABEL, NOT_A_LABEL

_NODE_PATHS = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate"),
    *("File", "FileOrCreate", "Socket"),
)


def volume(source: Obj, at: str) -> Iterator[Cause]:
    """Check a volume's own name, and the paths of the files in it."""
    if not LABEL.fullmatch(source.get("name", "")):
        yield invalid_value(f"{at}.name", source.get("name", ""), NOT_A_LABEL)
    if (host := source.get("hostPath")) is not None:
        yield from of_node(host, f"{at}.hostPath")
    for kind in ("secret", "configMap"):
        yield from _items(source.get(kind) or {}, f"{at}.{kind}")
    yield from _downward(source.get("downwardAPI") or {}, f"{at}.downwardAPI")
    for n, part in enumerate((source.get("projected") or {}).get("sources") or []):
        below = f"{at}.projected.sources[{n}]"
        for kind in ("secret", "configMap"):
            yield from _items(part.get(kind) or {}, f"{below}.{kind}")
        yield from _downward(part.get("downwardAPI") or {}, f"{below}.downwardAPI")
        if token := part.get("serviceAccountToken"):
            yield from inside(token.get("path", ""), f"{at}.projected.path")


def of_node(host: Obj, at: str) -> Iterator[Cause]:
    if not host.get("path"):
        yield required(f"{at}.path")
    yield from _no_way_up(host.get("path", ""), f"{at}.path")
    if (kind := host.get("type") or "") not in _NODE_PATHS:
        yield not_supported(f"{at}.type", kind, _NODE_PATHS)


def _items(source: Obj, at: str) -> Iterator[Cause]:
    for n, item in enumerate(source.get("items") or []):
        yield from _unreserved(item.get("path", ""), f"{at}.items[{n}].path")


def _downward(source: Obj, at: str) -> Iterator[Cause]:
    for item in source.get("items") or []:
        yield from _unreserved(item.get("path", ""), f"{at}.path")


def _unreserved(path: str, at: str) -> Iterator[Cause]:
    """Refuse names that begin with two dots, which the kubelet uses itself."""
    causes = list(inside(path, at))
    yield from causes
    if not causes and path.startswith(".."):
        yield invalid_value(at, path, "must not start with '..'")


def inside(path: str, at: str) -> Iterator[Cause]:
    if path.startswith("/"):
        yield invalid_value(at, path, "must be a relative path")
    yield from _no_way_up(path, at)


def _no_way_up(path: str, at: str) -> Iterator[Cause]:
    if ".." in path.split("/"):
        yield invalid_value(at, path, "must not contain '..'")
