"""ControllerRevisions: numbered versions of a workload's template, stored as objects to allow a rollback."""

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.workloads.ownership import Controlled, control_by, key_of
from devcluster.controllers.workloads.replicas import template_hash
from devcluster.resources import CONTROLLER_REVISION, Kind, Obj
from devcluster.store import clone

HASH = "controller.kubernetes.io/hash"


class Revisions:
    def __init__(self, api: Api, kind: Kind):
        self._api, self._kind = api, kind
        self._kept = Controlled(api.store, CONTROLLER_REVISION)

    def of(self, workload: Obj) -> list[Obj]:
        """Return the workload's revisions, the oldest first."""
        return sorted(self._kept.of(self._kind, workload), key=lambda r: int(r["revision"]))

    def latest(self, workload: Obj) -> Obj:
        """Return the revision of the present template; create it, or give it the highest number again, if needed."""
        kept = self.of(workload)
        newest = kept[-1]["revision"] if kept else 0
        wanted = self._revision(workload, newest + 1)
        same = next((r for r in reversed(kept) if r["data"] == wanted["data"]), None)
        if same is None:
            writer, namespace = Writer(CONTROLLER), workload["metadata"]["namespace"]
            there = self._api.store.get(CONTROLLER_REVISION, namespace, wanted["metadata"]["name"])
            return there or self._api.create(CONTROLLER_REVISION, namespace, wanted, writer)
        if same["revision"] == newest:
            return same
        renumbered = {"revision": newest + 1}
        return self._api.update(
            CONTROLLER_REVISION, *key_of(same), lambda o: o | renumbered, Writer(CONTROLLER)
        )

    def forget(self, workload: Obj, in_use: set[str]) -> None:
        """Delete unused revisions beyond the history limit."""
        unused = [r for r in self.of(workload) if r["metadata"]["name"] not in in_use]
        for revision in unused[: max(len(unused) - workload["spec"]["revisionHistoryLimit"], 0)]:
            self._api.try_delete(CONTROLLER_REVISION, revision)

    def _revision(self, workload: Obj, number: int) -> Obj:
        meta, template = workload["metadata"], clone(workload["spec"]["template"])
        code = template_hash(template)
        labels = (template["metadata"].get("labels") or {}) | {HASH: code}
        about: Obj = {"name": f"{meta['name']}-{code}", "labels": labels}
        about |= {"ownerReferences": [control_by(self._kind, workload)]}
        if meta.get("annotations"):
            about["annotations"] = clone(meta["annotations"])
        data = {"spec": {"template": template | {"$patch": "replace"}}}
        return {"metadata": about, "data": data, "revision": number}


def template_of(revision: Obj) -> Obj:
    return {k: v for k, v in revision["data"]["spec"]["template"].items() if k != "$patch"}
