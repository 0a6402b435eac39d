"""Tests of the plan of `make up`, made from the environment and from what the last run stored."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.up import ports
from portal.up.plan import Plan, environment, make_plan
from portal.up.refusal import Refusal
from portal.up.state import State


@pytest.fixture(autouse=True)
def free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda address, port: True)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    yield State.make(tmp_path / "state")


def plan(state: State, **environ: str) -> Plan:
    return make_plan(state, state.folder / "run", environ)


def names(plan: Plan) -> list[str]:
    return [program.name for program in plan.programs]


def test_everything_is_ours_where_nothing_is_given(state: State) -> None:
    ours = plan(state)
    assert names(ours) == ["postgres", "cluster", "worker", "watcher", "collector", "ssh-jump", "web"]
    assert ours.address == "http://127.0.0.1:8000/"
    assert ours.settings["KUBECONFIG"] == str(state.kubeconfig)


def test_a_given_database_and_cluster_are_used_and_ours_are_not_started(state: State) -> None:
    given = plan(state, DATABASE_URL="postgres://db/x", KUBECONFIG="/etc/k")
    assert names(given) == ["worker", "watcher", "collector", "ssh-jump", "web"]
    assert given.settings["DATABASE_URL"] == "postgres://db/x"
    assert given.settings["KUBECONFIG"] == "/etc/k"
    assert not given.has_trial_cluster


def test_only_a_trial_cluster_has_simulated_agents(state: State) -> None:
    cluster = next(program for program in plan(state).programs if program.name == "cluster")
    told = cluster.command.index("--agent-portal")
    portal, _, token_file = cluster.command[told + 1 : told + 4]
    assert (portal, token_file) == ("http://127.0.0.1:8000", str(state.folder / "agent-token"))
    assert not any("--agent-portal" in p.command for p in plan(state, KUBECONFIG="/etc/k").programs)


def test_an_empty_setting_is_as_good_as_none(state: State) -> None:
    assert names(plan(state, DATABASE_URL="", KUBECONFIG="", PORT=""))[0] == "postgres"


def test_secrets_and_addresses_stay_the_same_over_restarts(state: State) -> None:
    first = plan(state)
    state.write_run_file(first.settings)
    second = plan(state)
    assert second.settings == first.settings
    assert first.has_new_password
    assert not second.has_new_password


def test_a_changed_demo_password_is_noticed(state: State) -> None:
    state.write_run_file(plan(state).settings)
    changed = plan(state, BERTH_DEMO_PASSWORD="open sesame")
    assert changed.has_new_password
    assert changed.settings["BERTH_DEMO_PASSWORD"] == "open sesame"


def test_the_web_server_believes_no_header_about_who_connects(state: State) -> None:
    web = next(program for program in plan(state).programs if program.name == "web")
    assert "--no-proxy-headers" in web.command


def test_ssh_through_berth_listens_on_this_machine_alone_and_at_the_same_port_again(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan(state)
    assert first.jump_address == first.jump_public_address == "127.0.0.1:2222"
    state.write_run_file({**first.settings, "BERTH_SSH_JUMP_PORT": "2345"})
    assert plan(state).jump_address == "127.0.0.1:2345"
    monkeypatch.setattr(ports, "is_free", lambda address, port: address != "127.0.0.1" or port == 8000)
    assert plan(state).settings["BERTH_SSH_JUMP_PORT"] not in ("2222", "2345")


def test_every_role_has_its_own_database_connections(state: State) -> None:
    roles = {program.name: program.environment.get("BERTH_ROLE") for program in plan(state).programs}
    assert roles["web"] == "web"
    assert roles["worker"] == "worker"
    assert roles["watcher"] == "watcher"
    assert roles["ssh-jump"] == "ssh-jump"


def test_secrets_reach_the_parts_by_the_private_file_alone(state: State) -> None:
    made = plan(state, BERTH_SECRET_KEY="hush", PATH="/bin")
    inherited = environment(made, {"BERTH_SECRET_KEY": "hush", "PATH": "/bin"})
    assert "hush" not in str(inherited) + str(made.programs)
    assert inherited["PATH"] == "/bin"


@pytest.mark.parametrize("port", ["http", "0", "70000", "-1"])
def test_a_port_that_is_none_is_refused(state: State, port: str) -> None:
    with pytest.raises(Refusal, match="PORT"):
        plan(state, PORT=port)


def test_an_unknown_kind_of_pods_is_refused_with_the_known_ones(state: State) -> None:
    with pytest.raises(Refusal, match="process or played"):
        plan(state, BERTH_DEVCLUSTER_PODS="real")


def test_played_pods_need_no_port_of_a_workspace(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda address, port: port != 8888)
    with pytest.raises(Refusal, match="8888"):
        plan(state)
    assert plan(state, BERTH_DEVCLUSTER_PODS="played").has_trial_cluster
