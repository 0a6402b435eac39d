"""Storage that was there before is adopted on a real HTTP Kubernetes API: kept, read-only, looked at, confirmed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accounts.access import Actor
from accounts.errors import Conflict, Invalid, NotAllowed
from accounts.notices.models import Notice
from clusters.api import Api
from devcluster.testing.kube import Kube
from devcluster.testing.waiting import until
from storage import adoption, changes
from storage.adoption import Found
from storage.cluster.adopting import MARK
from storage.cluster.keeper import Keeper
from storage.files import sessions
from storage.files.inspecting import report_of
from storage.models import FilesSession, Volume
from storage.mounts.mounting import may_mount
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.keeping import created, in_phase, keep, with_problem
from tests.shared.looking import listed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
REPORT = {"file_system": "ext4", "size_mib": 100, "used_mib": 40, "uid": 1000, "names": ["scans/"], "more": 3}


def foreign_claim(house: Cast, api: Api) -> str:
    """Make a PVC in the tenant's namespace by hand. Return its name."""
    created(house)  # the cluster's settings
    keep(Volume.objects.get(name="data"), in_phase("ready"))  # its namespace
    name = f"scans-{uuid4().hex[:6]}"
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "128Mi"}}}
    body = {"apiVersion": "v1", "kind": CLAIM, "spec": spec | {"storageClassName": "net-shared"}}
    api.create(body | {"metadata": {"name": name, "namespace": house.demo.namespace}})
    wait_bound(house, api, name)
    return name


def foreign_volume(house: Cast, api: Api) -> str:
    """Return the name of a persistent volume that a PVC left behind."""
    name = foreign_claim(house, api)
    volume = str(wait_bound(house, api, name)["spec"]["volumeName"])
    api.merge_patch(VOLUME, None, volume, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    api.delete(CLAIM, house.demo.namespace, name)
    until(lambda: (api.get(VOLUME, None, volume) or {})["status"]["phase"] == "Released")
    return volume


def wait_bound(house: Cast, api: Api, name: str) -> dict[str, Any]:
    until(lambda: (api.get(CLAIM, house.demo.namespace, name) or {})["status"]["phase"] == "Bound")
    return api.get(CLAIM, house.demo.namespace, name) or {}


def adopted(house: Cast, *, name: str = "scans", **what: str) -> Volume:
    found = Found(name=name, kind="dataset", owner="alice", **what)
    return adoption.adopt(house.admin, house.demo.slug, found)


def read_only(volume: Volume) -> bool:
    return volume.adoption == "read_only" and volume.phase == "ready"


class Inspector:
    """Lets the pods of inspections end, as no program runs in simulated pods."""

    def __init__(self, api: Api, kubeconfig: Path) -> None:
        self.api, self.kube = api, Kube(kubeconfig)

    def pod_of(self, volume: Volume) -> dict[str, Any]:
        opened = FilesSession.objects.filter(volume=volume, ended_at=None, inspects=True)
        keep(volume, lambda _row: opened.exists())
        name, namespace = opened.get().object_name, volume.tenant.namespace

        def runs() -> bool:  # before that its kubelet would write over what is written here
            pod = self.api.get("Pod", namespace, name)
            return pod is not None and (pod.get("status") or {}).get("phase") == "Running"

        keep(volume, lambda _row: runs())
        return self.api.get("Pod", namespace, name) or {}

    def ends(self, volume: Volume, report: Any = REPORT, phase: str = "Succeeded") -> Volume:
        """Let the pod of the inspection end with this report. Return the volume as it is then."""
        pod = self.pod_of(volume)["metadata"]
        ended = {"terminated": {"exitCode": 0, "message": json.dumps(report)}}
        status = {"phase": phase, "containerStatuses": [{"name": "files", "state": ended}]}
        path = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/status"
        code, answer = self.kube.call("PATCH", path, {"status": status}, "merge")
        assert code == 200, answer
        keep(volume, lambda row: row.inspection is not None)
        return keep(volume, lambda row: not row.files_sessions.filter(ended_at=None).exists())


@pytest.fixture
def inspector(api: Api, played_cluster: Path) -> Inspector:
    return Inspector(api, played_cluster)


def kept(volume: Volume, api: Api) -> tuple[str, list[str]]:
    """Return the reclaim policy and the mount options of the persistent volume behind it."""
    spec = (api.get(VOLUME, None, volume.bound_to) or {})["spec"]
    return spec["persistentVolumeReclaimPolicy"], spec.get("mountOptions") or []


def writes(volume: Volume, actor: Actor) -> bool:
    return may_mount(volume, actor.user.pk, read_only=False)


def test_a_pvc_is_kept_and_read_only_until_its_owner_has_confirmed_what_is_in_it(
    house: Cast, api: Api, inspector: Inspector
) -> None:
    name = foreign_claim(house, api)
    uid = (api.get(CLAIM, house.demo.namespace, name) or {})["metadata"]["uid"]
    volume = keep(adopted(house, claim=name), read_only)
    assert kept(volume, api) == ("Retain", ["ro"])
    assert Notice.objects.get(kind="volume").user == house.alice.user
    assert (volume.size_mib, volume.access, volume.storage_class) == (128, "rwx", "net-shared")
    with pytest.raises(Conflict, match="looked at first"):
        sessions.start(house.alice, volume)
    with pytest.raises(Conflict, match="not inspected"):
        adoption.confirm(house.alice, volume)

    spec = inspector.pod_of(volume)["spec"]
    mounted = {one["name"]: one for one in spec["volumes"]}
    assert mounted["volume"]["persistentVolumeClaim"] == {"claimName": name, "readOnly": True}
    assert spec["containers"][0]["command"] == ["python3", "-m", "files.about", "/volume"]
    volume = inspector.ends(volume)
    assert volume.inspection == REPORT | {"unreadable": False}

    assert may_mount(volume, house.alice.user.pk, read_only=True)
    assert not writes(volume, house.alice)
    session, _is_new = sessions.start(house.alice, volume)
    assert not session.writes
    sessions.end(house.alice, volume)
    with pytest.raises(Conflict, match="read-only until"):
        changes.change(house.alice, volume, {"size_mib": 256})
    with pytest.raises(NotAllowed):
        adoption.confirm(house.bob, volume)
    with pytest.raises(NotAllowed):
        adoption.confirm(house.admin, volume)

    assert adoption.confirm(house.alice, volume)
    volume = keep(volume, lambda row: row.adoption == "")
    assert kept(volume, api) == ("Retain", [])
    assert writes(volume, house.alice)
    assert (api.get(CLAIM, house.demo.namespace, name) or {})["metadata"]["uid"] == uid
    assert MARK not in ((api.get(VOLUME, None, volume.bound_to) or {})["metadata"].get("annotations") or {})


def test_the_keeper_comes_back_to_it_until_there_is_nothing_to_do(
    house: Cast, api: Api, inspector: Inspector
) -> None:
    def is_looked_at(volume: Volume) -> bool:
        keeper = Keeper(house.cluster, listed(house.cluster, house.demo.namespace))
        Volume.objects.filter(pk=volume.pk).update(dirty_since=None)
        return bool(keeper.unsettled().filter(pk=volume.pk).exists())

    volume = adopted(house, claim=foreign_claim(house, api))
    assert is_looked_at(volume)
    assert is_looked_at(keep(volume, read_only))
    inspector.ends(volume)
    assert not is_looked_at(volume)
    adoption.confirm(house.alice, volume)
    assert is_looked_at(volume)
    assert not is_looked_at(keep(volume, lambda row: row.adoption == ""))


def test_a_released_persistent_volume_gets_a_pvc_of_its_own(
    house: Cast, api: Api, inspector: Inspector
) -> None:
    found = foreign_volume(house, api)
    volume = keep(adopted(house, persistent_volume=found), read_only)
    claim = api.get(CLAIM, house.demo.namespace, volume.object_name) or {}
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == (found, "Bound")
    assert kept(volume, api) == ("Retain", ["ro"])
    volume = inspector.ends(volume)
    adoption.confirm(house.alice, volume)
    assert kept(keep(volume, lambda row: row.adoption == ""), api) == ("Retain", [])


def test_what_somebody_uses_is_adopted_once_they_have_ended(house: Cast, api: Api) -> None:
    name = foreign_claim(house, api)
    source = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
    container = {"name": "c", "image": "berth.local/jupyter:1", "securityContext": RESTRICTED}
    user = {"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 1000}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "theirs", "namespace": house.demo.namespace},
        "spec": {"containers": [container], "volumes": [source], "securityContext": user},
    }
    api.create(pod)
    volume = keep(adopted(house, claim=name), with_problem("adopted_in_use"))
    assert volume.problem_data == {"name": name, "by": "theirs"}
    assert volume.adoption == "asked"
    api.delete("Pod", house.demo.namespace, "theirs")
    assert keep(volume, read_only).problem == ""


def test_what_belongs_to_a_pvc_of_somebody_else_is_not_taken(house: Cast, api: Api) -> None:
    name = foreign_claim(house, api)
    claim = wait_bound(house, api, name)
    volume = keep(
        adopted(house, persistent_volume=claim["spec"]["volumeName"]), with_problem("adopted_taken")
    )
    assert volume.problem_data["by"] == f"{house.demo.namespace}/{name}"
    assert (
        keep(adopted(house, claim="not-there", name="other"), with_problem("adopted_missing")).phase
        == "pending"
    )


def test_an_inspection_without_a_report_lets_nobody_confirm_and_can_be_repeated(
    house: Cast, api: Api, inspector: Inspector
) -> None:
    volume = keep(adopted(house, claim=foreign_claim(house, api)), read_only)
    volume = inspector.ends(volume, "no report", "Failed")
    assert (volume.inspection or {})["problem"] == "inspection_failed"
    with pytest.raises(Conflict, match="not inspected"):
        adoption.confirm(house.alice, volume)
    page = browser(house.alice).get(f"/volumes/{volume.pk}/").content.decode()
    assert 'id="inspect"' in page
    assert 'id="confirm"' not in page
    assert adoption.inspect_again(house.alice, volume)
    assert (inspector.ends(volume).inspection or {})["names"] == ["scans/"]


def test_a_volume_that_nobody_confirmed_leaves_its_data_where_it_was(
    house: Cast, api: Api, inspector: Inspector
) -> None:
    name = foreign_claim(house, api)
    volume = inspector.ends(keep(adopted(house, claim=name), read_only))
    changes.delete(house.alice, volume, now=True)
    keep(volume, lambda row: row.deleted_at is not None)
    assert (api.get(CLAIM, house.demo.namespace, name) or {})["status"]["phase"] == "Bound"
    assert kept(volume, api)[0] == "Retain"


def test_only_admins_adopt_for_members_and_each_volume_once(house: Cast, api: Api) -> None:
    with pytest.raises(NotAllowed):
        adoption.adopt(house.alice, house.demo.slug, Found(name="x", kind="disk", owner="alice", claim="c"))
    with pytest.raises(Invalid) as refused:
        adoption.adopt(house.admin, house.demo.slug, Found(name="/", kind="scratch", owner="victor"))
    assert set(refused.value.fields) == {"name", "kind", "owner", "persistent_volume"}
    name = foreign_claim(house, api)
    adopted(house, claim=name)
    with pytest.raises(Conflict, match="already"):
        adopted(house, claim=name, name="again")
    own = Volume.objects.get(name="data")
    with pytest.raises(Conflict, match="already"):
        adopted(house, persistent_volume=own.bound_to, name="again")


def test_an_admin_adopts_on_a_page_and_its_owner_sees_what_is_in_it(
    house: Cast, api: Api, inspector: Inspector
) -> None:
    name = foreign_claim(house, api)
    asked = {"name": "scans", "kind": "dataset", "claim": name, "owner": "alice", "tenant": house.demo.slug}
    asked["cluster"] = house.cluster.slug
    assert browser(house.bob).post("/volumes/adopt/", asked).status_code == 403
    answer = browser(house.admin).post("/volumes/adopt/", asked)
    assert answer.status_code == 302, answer.content.decode()
    volume = keep(Volume.objects.get(name="scans"), read_only)
    inspector.ends(volume)
    page = browser(house.alice).get(f"/volumes/{volume.pk}/").content.decode()
    assert "ext4" in page
    assert "<code>scans/</code>" in page
    assert 'id="confirm"' in page
    assert 'id="confirm"' not in browser(house.bob).get(f"/volumes/{volume.pk}/").content.decode()
    assert browser(house.alice).post(f"/volumes/{volume.pk}/confirm/").status_code == 302
    assert Volume.objects.get(pk=volume.pk).adoption == "confirmed"


@pytest.mark.parametrize(
    "message",
    ["", "no json", "[]", '{"names": [1, null], "size_mib": "x"}', json.dumps({"names": ["x" * 9999]})],
)
def test_a_report_holds_only_what_a_report_may_have(message: str) -> None:
    status = {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"message": message}}}]}
    report = report_of({"status": status})
    assert report.get("problem") == "inspection_failed" or all(len(name) <= 256 for name in report["names"])
