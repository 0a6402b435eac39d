"""Requests that Berth makes to a Kubernetes API: raw JSON in, raw JSON out.

Applies are server-side with one field manager, forced: fields that Berth owns are set back, others stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.kinds import KINDS
from clusters.labels import MANAGER
from clusters.transport import READ_TIMEOUT_SECONDS, Json, Lines, Objects, Transport

PAGE = 500
# A list of metadata alone. A server that cannot make one answers 406, never with whole objects instead.
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
LONGEST_LOG_LINE_BYTES = 64 * 2**10


Kept = TypeVar("Kept")
AllKept = list[Kept]


class Api:
    """API of one cluster. Every method may raise ClusterUnavailable or ClusterRefused."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def address(self) -> str:
        """Address of the connection, as in "https://10.0.0.1:6443"."""
        return self._transport.address

    # --- reading

    def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """Return the object, or None if it does not exist."""
        return self._request_existing("GET", KINDS[kind].path(namespace, name))

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Objects:
        return self.list_with_version(kind, namespace=namespace, labels=labels, fields=fields, keep=dict)[0]

    def list_with_version(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        keep: Callable[[Json], Kept],
    ) -> tuple[AllKept[Kept], str]:
        """Return what `keep` makes of each object, and the resource version to watch from.

        Five thousand pods take 300 MiB as JSON, so only one page is held at a time.
        """
        kept: AllKept[Kept] = []
        page: Json = {}
        query = _selectors(labels, fields)
        try:
            for page in self._pages(kind, namespace, {**query, "limit": PAGE}):
                kept += [keep(body) for body in page["items"]]
        except ClusterRefused as refused:
            if refused.status != 410 or not page:
                raise
            # The pages' snapshot was compacted away while we read: list again, in one piece.
            kept = []
            for page in self._pages(kind, namespace, query):
                kept += [keep(body) for body in page["items"]]
        return kept, str(page["metadata"].get("resourceVersion", ""))

    def each(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        metadata_only: bool = False,
    ) -> Iterator[Json]:
        """Yield all objects, holding one page at most: for callers that read all of them and keep few.

        Raises ClusterRefused (410) if the server drops the pages' snapshot before the last page is read.
        """
        query: dict[str, str | int] = {**_selectors(labels, fields), "limit": PAGE}
        accept = METADATA_ONLY if metadata_only else None
        for page in self._pages(kind, namespace, query, accept):
            yield from page["items"]

    def _pages(
        self, kind: str, namespace: str | None, query: dict[str, str | int], accept: str | None = None
    ) -> Iterator[Json]:
        """Yield the pages of a list. Add kind and apiVersion to the items, which lists leave out."""
        named = {"kind": kind, "apiVersion": KINDS[kind].api_version}
        while True:
            page = self._transport.request("GET", KINDS[kind].path(namespace), query=query, accept=accept)
            yield {**page, "items": [{**body, **named} for body in _items(page)]}
            if not (following := page["metadata"].get("continue")):
                return
            query = {**query, "continue": following}

    def watch(
        self,
        kind: str,
        *,
        version: str,
        labels: Mapping[str, str] | None = None,
        server_timeout_seconds: int,
        read_timeout_seconds: float,
    ) -> Lines:
        """Watch all namespaces in one request. Return lines of JSON, until the server ends it."""
        query: dict[str, str | int] = {
            **_selectors(labels, None),
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": server_timeout_seconds,
        }
        return self._transport.stream(
            KINDS[kind].path(None), query=query, read_timeout_seconds=read_timeout_seconds
        )

    def logs(self, namespace: str, pod: str, *, container: str, tail_lines: int | None = None) -> Lines:
        """Return lines of a container's log, as it is now: log_streams.py follows logs."""
        query: dict[str, str | int] = {"container": container, "follow": "false"}
        if tail_lines is not None:
            query["tailLines"] = tail_lines
        return self._transport.stream(
            KINDS["Pod"].path(namespace, pod, "log"),
            query=query,
            read_timeout_seconds=READ_TIMEOUT_SECONDS,
            longest_line_bytes=LONGEST_LOG_LINE_BYTES,
        )

    def ask_for_little(self, *, within_seconds: float) -> None:
        """Make the smallest request that the API server's store (etcd) must answer."""
        self._transport.request(
            "GET", KINDS["Node"].path(None), query={"limit": 1}, read_timeout_seconds=within_seconds
        )

    def version(self) -> str:
        """Return the cluster's version, as in "v1.36.2"."""
        return str(self._transport.request("GET", "/version").get("gitVersion", ""))

    def groups(self) -> set[str]:
        """Return the API groups that the cluster serves, as in "metallb.io"."""
        return {group["name"] for group in self._transport.request("GET", "/apis").get("groups", [])}

    # --- writing

    def apply(self, body: Json) -> Json:
        """Create the object or bring it to this state. An apply to one with a deletionTimestamp is lost."""
        return self._transport.request(
            "PATCH",
            _path_of(body, body["metadata"]["name"]),
            query={"fieldManager": MANAGER, "force": "true"},
            body=body,
            content_type="application/apply-patch+yaml",
            quotes_secrets=body["kind"] == "Secret",
        )

    def try_create(self, body: Json) -> None:
        """Check by a dry run through every admission step; raises ClusterRefused if it is not accepted."""
        self._transport.request(
            "POST", _path_of(body), query={"dryRun": "All", "fieldManager": MANAGER}, body=body
        )

    def create(self, body: Json) -> Json:
        """Create the object; raises ClusterRefused (409, AlreadyExists) if its name is taken."""
        return self._transport.request(
            "POST", _path_of(body), query={"fieldManager": MANAGER}, body=body, repeatable=False
        )

    def json_patch(self, kind: str, namespace: str | None, name: str, operations: Objects) -> Json | None:
        return self._patch(kind, namespace, name, operations, "application/json-patch+json", repeatable=False)

    def merge_patch(self, kind: str, namespace: str | None, name: str, body: Json) -> Json | None:
        return self._patch(kind, namespace, name, body, "application/merge-patch+json", repeatable=True)

    def delete(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete; return False if nothing was there. An object of that name with another uid counts as gone."""
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        path = KINDS[kind].path(namespace, name)
        try:
            self._transport.request("DELETE", path, body=options, repeatable=uid is not None)
        except ClusterRefused as refused:
            if refused.status == 404 or (
                refused.status == 409 and "UID in the precondition" in refused.message
            ):
                return False
            raise
        return True

    def _patch(
        self, kind: str, namespace: str | None, name: str, body: Any, content_type: str, *, repeatable: bool
    ) -> Json | None:
        """Return the patched object, or None if it does not exist."""
        return self._request_existing(
            "PATCH",
            KINDS[kind].path(namespace, name),
            query={"fieldManager": MANAGER},
            body=body,
            content_type=content_type,
            repeatable=repeatable,
            quotes_secrets=kind == "Secret",
        )

    def _request_existing(self, method: str, path: str, **options: Any) -> Json | None:
        """Return the answer's JSON, or None if the object does not exist."""
        try:
            return self._transport.request(method, path, **options)
        except ClusterRefused as refused:
            if refused.status == 404:
                return None
            raise


def list_if_served(api: Api, kind: str) -> Objects:
    """List a kind that not every cluster serves; empty if this one does not."""
    try:
        return api.list(kind)
    except ClusterRefused as refused:
        if refused.status == 404:
            return []
        raise


def _items(page: Json) -> Objects:
    """Return the items. Raise if the answer is no list (a proxy's, perhaps), or it would count as an empty cluster."""
    if "items" not in page or not isinstance(page.get("metadata"), dict):
        raise ClusterUnavailable("The cluster answered a list with something else.")
    return page["items"] or []


def _path_of(body: Json, name: str | None = None) -> str:
    return KINDS[body["kind"]].path(body.get("metadata", {}).get("namespace"), name)


def _selectors(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> dict[str, str | int]:
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {
        name: ",".join(f"{key}={value}" for key, value in pairs.items())
        for name, pairs in selectors.items()
        if pairs
    }
