"""Hostile configurations. JSON is YAML, so they are sent like every other body."""

from __future__ import annotations

from typing import Any

from tests.portal.hostile import of


def put(values: Any) -> tuple[str, str, Any]:
    return "PUT", "configuration/", values


POOL = {"slug": "p", "name": "P", "cluster": "main"}
FLAVOR = {"slug": "f", "name": "F", "pool": "a100", "cpu": 1, "memory_mib": 1024}
QUOTA = {"tenant": "demo", "pool": "a100"}
TENANT = {"slug": "third", "name": "Third"}
SIGN_ON = {"host": "registry.example", "username": "robot", "password": "x"}
FAR = {"slug": "far", "name": "Far", "connection": "pasted"}

CONFIGURATION: list[tuple[str, str, Any]] = [
    *map(put, of([], "x", 7, {"surprises": []}, {"pools": 7}, {"pools": {}}, {"pools": [7]}, {"pools": [[]]})),
    *(put({"delete_absent": names}) for names in of(7, "pools", ["people"], ["surprise"], [[]], [{}], [None])),
    *(put({"tenants": [TENANT | change]}) for change in of(
        {"slug": "kube-x"}, {"slug": "a" * 99}, {"slug": 7}, {"slug": None}, {"slug": "a\0"}, {"name": ""},
        {"name": "a\nb"}, {"name": "\ud83d"}, {"name": "\u202e"}, {"name": None}, {"name": []}, {"id": "1"},
    )),
    *(put({"pools": [POOL | change]}) for change in of(
        {"cluster": "nowhere"}, {"cluster": None}, {"cluster": "\0"}, {"weight": -1}, {"weight": 1e308},
        {"weight": "much"}, {"weight": True}, {"units_per_gpu": 0}, {"units_per_gpu": 2**70}, {"units_per_gpu": 1.5},
        {"sharing": "half"}, {"node_labels": {"a b": "x"}}, {"node_labels": {"a": 1}}, {"node_labels": []},
        {"node_labels": {"a": "\ud83d"}}, {"tolerations": {}}, {"tolerations": [7]}, {"tolerations": [{"key": "\0"}]},
        {"extra_resources": {"rdma/hca": 10**9}}, {"image_pull_secrets": ["A B"]}, {"driver_path": "/etc"},
        {"is_open": "perhaps"}, {"is_open": None}, {"cpu_overcommit": 0.5}, {"forecast_early": 9},
    )),
    *(put({"flavors": [FLAVOR | change]}) for change in of(
        {"gpus": -1}, {"gpus": 0.3}, {"gpus": 1e308}, {"gpus": None}, {"cpu": 0}, {"cpu": "4m"}, {"cpu": 1e-9},
        {"memory_mib": 0}, {"memory_mib": 2**63}, {"pool": "nothing"}, {"pool": []},
    )),
    *(put({"quotas": [QUOTA | change]}) for change in of(
        {"tenant": "nothing"}, {"tenant": "\0"}, {"pool": None}, {"nominal_gpus": -1}, {"nominal_gpus": 2**40},
        {"nominal_gpus": 0.5}, {"nominal_gpus": 0, "borrowing_limit_gpus": 1}, {"weight": 0}, {"used_gpus": 1},
    )),
    *(put({"clusters": [FAR | change]}) for change in of(
        {}, {"kubeconfig": "kept"}, {"kubeconfig": "env:PATH"}, {"kubeconfig": "env:BERTH_KUBECONFIG_NO"},
        {"kubeconfig": "apiVersion: v1"}, {"kubeconfig": 7}, {"connection": "telnet"}, {"pod_cidrs": ["10"]},
        {"connection": "kubeconfig"}, {"pod_cidrs": "10.0.0.0/8"}, {"http_proxy": "http://a:b@c"}, {"version": "1"},
        {"registries": "x"}, {"registries": [{"host": "a.example"}]}, {"registries": [SIGN_ON | {"password": "\0"}]},
        {"registries": [SIGN_ON | {"password": "env:PATH"}]}, {"registries": [SIGN_ON | {"host": "a b"}]},
        {"registries": [SIGN_ON] * 51}, {"registries": [SIGN_ON | {"host": "http://a.example"}]},
        {"pod_environment": "PATH=/x"}, {"pod_environment": "no"}, {"trusted_certificates": "x"},
        {"trusted_certificates": "-----BEGIN PRIVATE KEY-----"}, {"pod_environment": "A=" + "x" * 9000},
        {"files_uid": 0}, {"home_mib": -1}, {"shared_classes": [7]}, {"without_isolation": "yes, please"},
    )),
    *(put({"people": [{"username": "eve"} | change]}) for change in of(
        {"username": "a b"}, {"username": ""}, {"email": "x"}, {"is_admin": "yes, please"}, {"password": "x"},
        {"is_superuser": True}, {"username": "admin", "is_admin": False},
    )),
    *(put({"memberships": [{"tenant": "demo", "user": "carol"} | change]}) for change in of(
        {"role": "king"}, {"role": None}, {"user": "nobody"}, {"user": "alice", "role": "member"}, {"by_group": True},
    )),
    *(put({"budgets": [{"tenant": "demo", "gpu_hours": 1} | change]}) for change in of(
        {"gpu_hours": -1}, {"gpu_hours": 1e12}, {"gpu_hours": 0.001}, {"user": "nobody"}, {"grace_minutes": -1},
    )),
    *(put({"idle_policies": [{"tenant": "demo"} | change]}) for change in of(
        {"tenant": "nothing"}, {"pool": 7}, {"minutes": 0}, {"minutes": 2**40}, {"gpu_percent": 1e308},
        {"night_minutes": 5}, {"night_from": "25:00"}, {"night_from": []}, {"time_zone": "../x"}, {"is_active": None},
    )),
    *(("POST", "budget-hours/", {"tenant": "demo", "add_gpu_hours": 1} | change) for change in of(
        {"tenant": "nothing"}, {"tenant": "\0"}, {"tenant": None}, {"user": "nobody"}, {"user": 7},
        {"add_gpu_hours": 0}, {"add_gpu_hours": -1}, {"add_gpu_hours": 1e300}, {"add_gpu_hours": "NaN"},
        {"add_gpu_hours": 20_000_000}, {"add_gpu_hours": "much"}, {"add_gpu_hours": True}, {"add_gpu_hours": 0.001},
        {"month": "2026-01-01"},
    )),
    *(("POST", f"{kind}/", body) for kind in ("clusters", "pools", "flavors", "images", "quotas", "limits", "budgets")
      for body in of({}, [], "x", 7, {"slug": "x", "surprise": 1}, {"slug": "\0"}, {"tenant": "\ud83d", "pool": "x"})),
    *(("PATCH", "pools/a100/", change) for change in of(
        {"slug": "b"}, {"cluster": "nowhere"}, {"weight": -1}, {"is_open": None}, {"name": ""}, [], "x", {"id": "1"},
    )),
    *(("PATCH", path, {"name": "X"}) for path in (
        "pools/nothing/", "tenants/nothing/", "quotas/demo/nothing/", "limits/nothing/", "budgets/demo/nobody/",
    )),
    ("PATCH", "flavors/a100-1/", {"gpus": 0.3}),
    ("PATCH", "clusters/main/", {"kubeconfig": "env:PATH", "connection": "pasted"}),
    ("DELETE", "clusters/main/", None),
    ("DELETE", "pools/a100/?force=true", None),
    ("DELETE", "tenants/demo/?now=true", None),
    put({"limits": [{"tenant": "demo", "image_prefixes": "http://x"}]}),
    put({"log_limits": [{"tenant": "demo", "days": 10**6}]}),
    put({"images": [{"slug": "x", "name": "X", "reference": "a b"}]}),
    put({"images": [{"slug": "x", "name": "X", "reference": "a", "uid": 0}]}),
]  # fmt: skip
