"""Tests that rules and dashboards use exported names only, and that each alert says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import transaction
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from clusters.models import Gpu, Watcher
from monitoring.agent import exposition
from monitoring.agent.running import Agent, Settings
from monitoring.agent.schema import GpuSample, Inventory, Look
from monitoring.health import xids
from monitoring.models import AgentState, Trouble
from portal.metrics import COUNTERS, HISTOGRAMS
from portal.up.plan import REPOSITORY
from quotas import admission
from tests.cast import make_cast
from tests.deploy import dcgm_exporter
from tests.deploy.promql import Known, Labels, NotThere, labels_of
from vitals.figures import INFINITE
from vitals.models import Figure
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch

PROMETHEUS, GRAFANA = REPOSITORY / "deploy/prometheus", REPOSITORY / "deploy/grafana"
RULES = sorted(PROMETHEUS.glob("*.rules.yaml"))
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
ALERTS = REPOSITORY / "docs/operator/alerts.md"
# Labels that the scrape adds (scrape.yaml, monitors.yaml).
TARGET = frozenset({"instance", "job", "node"})
SEVERITIES = ("critical", "warning", "info")
UUID = "GPU-11111111-1111-4111-8111-111111111111"
Rule = dict[str, Any]


# --- Exported metrics


def of_text(text: str, more: Labels) -> dict[str, Labels]:
    """Map each sample's name to all of its labels."""
    found: dict[str, Labels] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, more) | frozenset(sample.labels)
    return found


def of_the_agent() -> dict[str, Labels]:
    """Return the agent's metrics from a complete report, with a figure in each field that may have one."""
    words: dict[str, Any] = {"uuid": UUID, "state": "ok", "slowed_by": ["heat"], "recovery_action": "none"}
    words |= {"processes": [{"pid": 1, "kind": "compute"}]}
    mig = [{"uuid": f"MIG-{UUID}", "memory_used_mib": 1}]
    figures = dict.fromkeys(GpuSample.__annotations__.keys() - words.keys() - {"mig", "failed"}, 1)
    report: Any = {
        "taken_at": 1.0,
        "troubles": [{"code": "uvm_missing", "detail": ""}],
        "gpus": [figures | words | {"mig": mig}],
        "holdings": [{"uuid": UUID, "namespace": "n", "pod": "p", "container": "c", "device": UUID}],
        "xids": [],
    }
    inventory: Any = {"gpus": [{"uuid": UUID, "index": 0, "memory_mib": 1}]}
    nowhere = Path("/nonexistent")
    pushing = Settings("n", 5, nowhere, nowhere, nowhere, "", "https://berth.example", nowhere, None, None)
    return of_text(told(report, inventory), TARGET) | of_text(Agent(pushing).text(), TARGET)


def told(report: Look, inventory: Inventory) -> str:
    return exposition.text(report, inventory, {(UUID, 79): 1}, [])


def of_the_portal(client: Client) -> dict[str, Labels]:
    """Return the portal's metrics with a row of each kind: a family without rows has no sample."""
    cast, now = make_cast(), timezone.now()
    for number in range(5):
        size = SizeAsked(flavor="a100-1")
        launch(cast.alice, LaunchSpec(tenant="demo", name=f"w-{number}", image="jupyter", size=size))
    admission.admit(cast.pool.pk)
    Watcher.objects.create(cluster=cast.cluster, kind="Pod", seen_at=now)
    Gpu.objects.create(cluster=cast.cluster, node="gpu-1", uuid=UUID, name="A100")
    AgentState.objects.create(
        cluster=cast.cluster, node="gpu-1", agent="a", taken_at=now, seen_at=now - timedelta(seconds=1)
    )
    Trouble.objects.create(cluster=cast.cluster, about="gpu", subject=UUID, code="gpu_lost", since=now)
    for histogram in HISTOGRAMS:
        labels = dict.fromkeys(histogram.labels, "x")
        of_it = {f"{histogram.name}_bucket": labels | {"le": INFINITE}, f"{histogram.name}_sum": labels}
        for name, named in of_it.items():
            Figure.objects.create(name=name, labels=json.dumps(named), value=1)
    for counter in COUNTERS:
        Figure.objects.create(
            name=counter.name, labels=json.dumps(dict.fromkeys(counter.labels, "x")), value=1
        )
    return of_text(client.get("/metrics").content.decode(), frozenset({"instance", "job"}))


@pytest.fixture(scope="module")
def exported(django_db_setup: None, django_db_blocker: Any) -> dict[str, Labels]:
    """Exported metrics, with those that rules record. Rules are read in order: each may use earlier ones."""
    with django_db_blocker.unblock(), transaction.atomic():
        known = of_the_portal(Client()) | of_the_agent()
        transaction.set_rollback(True)
    known |= dict.fromkeys(dcgm_exporter.COUNTERS, dcgm_exporter.LABELS | TARGET)
    for rule in rules():
        if "record" in rule:
            known[rule["record"]] = labels_of(rule["expr"], known)
    return known


def rules() -> list[Rule]:
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[Rule]:
    return [rule for rule in rules() if "alert" in rule]


# --- Names in rules and dashboards


@pytest.mark.django_db
def test_rules_ask_for_what_is_exported_and_name_labels_that_they_have(exported: Known) -> None:
    for rule in alerts():
        has = labels_of(rule["expr"], exported)
        words = " ".join(rule["annotations"].values())
        named = set(re.findall(r"\$labels\.(\w+)", words))
        assert named <= has, f"{rule['alert']} says {sorted(named - has)}, its labels are {sorted(has)}"


@pytest.mark.django_db
def test_dashboards_ask_for_what_is_exported_and_name_labels_that_they_have(exported: Known) -> None:
    for path in DASHBOARDS:
        for panel, expression, legend in asked(json.loads(path.read_text())):
            has = labels_of(expression, exported)
            named = set(re.findall(r"{{(\w+)}}", legend))
            assert named <= has, f"{path.name}: {panel} says {sorted(named - has)} of {sorted(has)}"


@pytest.mark.django_db
def test_variables_of_dashboards_are_labels_that_exist(exported: Known) -> None:
    for path in DASHBOARDS:
        for variable in json.loads(path.read_text())["templating"]["list"]:
            if variable["type"] == "query":
                match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
                assert match
                assert match[2] in labels_of(match[1], exported)


def asked(dashboard: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            legend = target["legendFormat"]
            yield panel["title"], target["expr"], "" if legend == "__auto" else legend


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        "berth_gpus_heId",
        'berth_gpus_held{poll="a100"}',
        "sum by (tenant) (berth_gpus_held)",
        "berth_gpus_held * on (node) berth_gpu_up",
        "histogram_quantile(0.9, sum by (step) (rate(berth_step_seconds_bucket[5m])))",
        'label_replace(berth_gpus_held, "a", "$1", "uuid", "(.+)")',
    ],
)
def test_a_name_that_nobody_exports_is_found(exported: Known, wrong: str) -> None:
    with pytest.raises(NotThere):
        labels_of(wrong, exported)


# --- Texts of alerts


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_every_alert_says_what_happened_and_what_to_do_and_has_its_paragraph(alert: Rule) -> None:
    said = alert["annotations"]
    assert said["summary"] and said["description"]
    assert alert["labels"]["severity"] in SEVERITIES
    assert said["runbook"] == f"docs/operator/alerts.md#{alert['alert'].lower()}"
    assert f"\n### {alert['alert']}\n" in ALERTS.read_text()


def test_no_paragraph_is_left_of_an_alert_that_is_gone() -> None:
    told = re.findall(r"^### (.+)$", ALERTS.read_text(), re.MULTILINE)
    assert sorted(told) == sorted(rule["alert"] for rule in alerts())


def test_the_xids_that_alert_are_those_that_take_a_gpu_out() -> None:
    [alert] = [rule for rule in alerts() if rule["alert"] == "BerthGpuXid"]
    out = sorted(xid for xid, meaning in xids.KNOWN.items() if meaning.takes_out)
    named = re.findall(r'xid=~"([0-9|]+)"', alert["expr"])
    assert named == ["|".join(map(str, out))] * 2


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_runs_on_any_data_source_and_every_panel_has_a_unit(path: Path) -> None:
    dashboard = json.loads(path.read_text())
    [source] = [one for one in dashboard["templating"]["list"] if one["type"] == "datasource"]
    assert source["query"] == "prometheus"
    assert not re.search(r"https?://", path.read_text())
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


# --- Scrape targets


def test_the_scrape_finds_what_the_manifests_deploy() -> None:
    manifests = REPOSITORY / "deploy/kubernetes"
    agent = next(body for body in read(manifests / "agent.yaml") if body["kind"] == "DaemonSet")
    web = next(body for body in read(manifests / "web.yaml") if body["kind"] == "Service")
    [container] = agent["spec"]["template"]["spec"]["containers"]
    port = container["ports"][0]
    told = agent["spec"]["template"]["metadata"]["annotations"]
    assert told["prometheus.io/port"] == str(port["containerPort"])
    assert "annotations" not in web["metadata"]  # a scrape by annotation sends no token

    [plain] = read(PROMETHEUS / "scrape.yaml")
    jobs = {job["job_name"]: job for job in plain["scrape_configs"]}
    of_berth, of_agents = read(PROMETHEUS / "monitors.yaml")
    address = (
        f"{web['metadata']['name']}.{web['metadata']['namespace']}.svc:{web['spec']['ports'][0]['port']}"
    )
    assert of_berth["spec"]["staticConfigs"] == jobs["berth"]["static_configs"] == [{"targets": [address]}]

    assert of_berth["spec"]["authorization"]["type"] == jobs["berth"]["authorization"]["type"] == "Bearer"
    secret = of_berth["spec"]["authorization"]["credentials"]["name"]
    assert jobs["berth"]["authorization"]["credentials_file"].endswith(f"/{secret}")

    [endpoint] = of_agents["spec"]["podMetricsEndpoints"]
    assert of_agents["spec"]["namespaceSelector"]["matchNames"] == [agent["metadata"]["namespace"]]
    assert of_agents["spec"]["selector"]["matchLabels"] == agent["spec"]["selector"]["matchLabels"]
    assert endpoint["port"] == port["name"]
    # Otherwise `pod` would be the agent's own pod, not the GPU's holder, and no figure would have its node.
    assert endpoint["honorLabels"] and jobs["berth-agent"]["honor_labels"]
    assert endpoint["relabelings"][-1]["targetLabel"] == "node"
    assert jobs["berth-agent"]["relabel_configs"][-1]["target_label"] == "node"
    assert plain["rule_files"] == [path.name for path in RULES]


def read(path: Path) -> list[Rule]:
    return list(yaml.safe_load_all(path.read_text()))


# --- Names in the operator's guide

TABLE_ROW = re.compile(r"^\| (`berth_.*?) \|", re.MULTILINE)
NAMED = re.compile(r"`(berth_\w+)(?:\{([\w, ]+)\})?`")


@pytest.mark.django_db
def test_the_guide_lists_every_metric_with_its_labels_and_no_other(exported: Known) -> None:
    parts = re.compile(rf"^({'|'.join(histogram.name for histogram in HISTOGRAMS)})_(bucket|count|sum)$")
    has = {
        parts.sub(r"\1", name): labels - TARGET - {"le"}
        for name, labels in exported.items()
        if name.startswith("berth_") and ":" not in name
    }
    listed: dict[str, Labels] = {}
    for guide in ("running.md", "agent.md"):
        for row in TABLE_ROW.findall((REPOSITORY / "docs/operator" / guide).read_text()):
            for name, labels in NAMED.findall(row):
                listed[name] = frozenset(labels.replace(",", " ").split())
    assert listed == has
