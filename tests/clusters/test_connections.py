"""Tests of kubeconfigs that are accepted or refused with a reason, and of how long a connection is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from accounts.credentials.secrets import encrypt
from clusters.connections import api_for, connect
from clusters.errors import ClusterMisconfigured
from clusters.models import Cluster

TOKEN = {"token": "very-secret-token"}
PROGRAM = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/echo"}}


def kubeconfig(folder: Path, user: dict[str, Any], **changes: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}, {"name": "programmed", "user": PROGRAM}],
        "contexts": [
            {"name": "plain", "context": {"cluster": "c", "user": "u"}},
            {"name": "programmed", "context": {"cluster": "c", "user": "programmed"}},
        ],
        "current-context": "plain",
        **changes,
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def cluster(path: str, context: str = "") -> Cluster:
    connection = Cluster.Connection.KUBECONFIG
    return Cluster(slug="lab", connection=connection, kubeconfig_path=path, context=context)


def test_a_token_in_a_kubeconfig_is_taken(tmp_path: Path) -> None:
    connect(cluster(kubeconfig(tmp_path, TOKEN)))


@pytest.mark.parametrize(
    "user", [PROGRAM, {"auth-provider": {"name": "gcp", "config": {}}}], ids=["exec", "provider"]
)
def test_one_that_runs_a_program_is_refused(tmp_path: Path, user: dict[str, Any]) -> None:
    with pytest.raises(
        ClusterMisconfigured, match=r"runs a program on this server.*BERTH_ALLOW_EXEC_PLUGINS"
    ):
        connect(cluster(kubeconfig(tmp_path, user)))


def test_the_chosen_context_counts_and_not_the_current_one(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, TOKEN)
    with pytest.raises(ClusterMisconfigured, match="runs a program"):
        connect(cluster(path, "programmed"))
    path = kubeconfig(tmp_path, TOKEN, **{"current-context": "programmed"})
    connect(cluster(path, "plain"))


def test_the_operator_may_allow_programs(tmp_path: Path, settings: Any) -> None:
    settings.ALLOW_EXEC_PLUGINS = True
    connect(cluster(kubeconfig(tmp_path, PROGRAM)))


def test_what_cannot_be_used_says_why(tmp_path: Path) -> None:
    with pytest.raises(ClusterMisconfigured, match="No such file"):
        connect(cluster(str(tmp_path / "absent")))
    with pytest.raises(ClusterMisconfigured, match="absent"):
        connect(cluster(kubeconfig(tmp_path, TOKEN), "absent"))
    for text in ("a: [", "KEY=very-secret", "- a\n- b", "users: 7\ncurrent-context: a\ncontexts: b"):
        (tmp_path / "kubeconfig").write_text(text)
        with pytest.raises(ClusterMisconfigured) as raised:
            connect(cluster(str(tmp_path / "kubeconfig")))
        assert "very-secret" not in str(raised.value)


def test_outside_a_cluster_the_inner_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClusterMisconfigured, match="No connection to lab"):
        connect(Cluster(slug="lab"))


def test_no_error_quotes_the_file(tmp_path: Path) -> None:
    broken = kubeconfig(tmp_path, {}, users=[{"name": "u", **TOKEN}])
    with pytest.raises(ClusterMisconfigured) as raised:
        connect(cluster(broken))
    assert "Expected key user" in str(raised.value)
    assert "very-secret" not in str(raised.value)


def test_a_connection_is_kept_until_the_file_or_the_row_changes(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, TOKEN)
    row = cluster(path)
    first = api_for(row)
    assert api_for(row) is first
    os.utime(path, ns=(1, 1))
    second = api_for(row)
    assert second is not first
    row.context = "plain"
    assert api_for(row) is not second


def test_a_forked_child_makes_its_own(tmp_path: Path) -> None:
    row = cluster(kubeconfig(tmp_path, TOKEN))
    first = api_for(row)
    child = os.fork()
    if child == 0:
        os._exit(0 if api_for(row) is not first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "user", [{"exec": {"command": "id"}}, {"tokenFile": "/var/run/secrets/token"}], ids=["program", "file"]
)
def test_a_row_that_somebody_wrote_runs_no_program_and_reads_no_file(
    tmp_path: Path, user: dict[str, Any]
) -> None:
    text = Path(kubeconfig(tmp_path, user)).read_text()
    row = Cluster(slug="lab", connection="pasted", kubeconfig=encrypt(text))
    with pytest.raises(ClusterMisconfigured):
        connect(row)
