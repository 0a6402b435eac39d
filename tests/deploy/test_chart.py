"""Tests of the chart: one source for Helm and Kustomize, values that are checked, and what the example values make."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.deploy.helm import Chart, merged
from tests.deploy.rendering import ADDED, BASE, CHART, DEPLOY, chart, defaults, files, objects, values_in

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
EXAMPLES = ["values.yaml", *sorted(path.name for path in CHART.glob("values-*.yaml"))]
PARTS = {"web", "worker", "watcher", "collector", "ssh-jump"}
Body = dict[str, Any]


def of_kind(name: str, *kinds: str) -> list[Body]:
    return [body for body in objects(name) if body["kind"] in kinds]


def pods(name: str) -> dict[str, Body]:
    """Pods of Berth's own namespace, by the name of their workload."""
    found = of_kind(name, "Deployment", "Job")
    return {body["metadata"]["name"]: body["spec"]["template"]["spec"] for body in found}


def is_valid(values: Body) -> bool:
    return jsonschema_rs.is_valid(SCHEMA, merged(defaults(), values))


# --- One source


def test_what_kubectl_applies_is_what_the_chart_makes() -> None:
    stale = [path.name for path, text in files().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "make manifests"


def test_every_template_is_in_a_file_that_kubectl_can_apply() -> None:
    templates = {path.stem for path in (CHART / "templates").glob("*.yaml")}
    assert templates == {*BASE, *(template for template, _values in ADDED.values())}


def test_kustomize_applies_all_parts_into_a_namespace_that_is_there() -> None:
    base = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())
    assert base["resources"][0] == "namespace.yaml"
    assert {Path(name).stem for name in base["resources"]} == {"namespace", *BASE}
    for path in ADDED:
        component = DEPLOY / Path(path).parent / "kustomization.yaml"
        if component.parent.name in ("ingress", "gateway", "priority"):
            assert yaml.safe_load(component.read_text())["resources"] == [Path(path).name]


def test_each_part_may_have_a_secret_of_its_own_with_helm_and_with_kustomize() -> None:
    names = {"web": "web", "worker": "worker", "watcher": "watcher", "collector": "collector"}
    names |= {"ssh-jump": "sshJump", "migrate": "migrate"}
    own = {"secret": {"parts": {value: f"berth-database-{part}" for part, value in names.items()}}}
    assert is_valid(own)
    rendered = chart().render(merged(defaults(), own), "berth")
    made = [body for part in names for body in yaml.safe_load_all(rendered[f"{part}.yaml"])]
    plain = [
        body for part in names for body in yaml.safe_load_all(files()[DEPLOY / f"kubernetes/{part}.yaml"])
    ]
    component = yaml.safe_load((DEPLOY / "kubernetes/database-accounts/kustomization.yaml").read_text())
    for patch in component["patches"]:
        [body] = [
            body
            for body in plain
            if patch["target"] == {"kind": body["kind"], "name": body["metadata"]["name"]}
        ]
        [added] = yaml.safe_load(patch["patch"])
        assert (added["op"], added["path"]) == ("add", "/spec/template/spec/containers/0/envFrom/-")
        body["spec"]["template"]["spec"]["containers"][0]["envFrom"].append(added["value"])
    assert made == plain
    as_files = merged(own, {"secret": {"asFiles": True}})
    web = next(yaml.safe_load_all(chart().render(merged(defaults(), as_files), "berth")["web.yaml"]))
    [volume] = [one for one in web["spec"]["template"]["spec"]["volumes"] if one["name"] == "secrets"]
    sources = [one["secret"]["name"] for one in volume["projected"]["sources"]]
    assert sources == ["berth", "berth-database-web"]  # the later file wins


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a {{- if .Values.on }} b {{ else }} c {{- end }} d", "a c d"),
        ('{{ $x := "1" }}{{ range $k, $v := .Values.map }}{{ $x = $k }}{{ $k }}={{ $v }};{{ end }}', "a=1;b=2;"),
        ('{{ with .Values.map }}{{ .a }}{{ $.Release.Namespace }}{{ end }}{{/* "}" */}}', "1berth"),
        ('x:{{ toYaml .Values.map | nindent 2 }}{{ default "no" .Values.on | quote }}', 'x:\n  a: 1\n  b: 2"no"'),
    ],
)  # fmt: skip
def test_templates_are_rendered_as_helm_does(template: str, text: str) -> None:
    values = {"on": False, "map": {"b": 2, "a": 1}}
    assert Chart({"one.yaml": template}).render(values, "berth") == {"one.yaml": text}


@pytest.mark.parametrize(
    "template", ['{{ lookup "v1" "Pod" }}', "{{ if }}", "{{ else if .x }}", "{{ if .Values }}"]
)
def test_a_template_that_the_tests_cannot_render_is_refused(template: str) -> None:
    with pytest.raises((KeyError, IndexError, NotImplementedError, ValueError)):
        Chart({"one.yaml": template}).render({}, "berth")


# --- Values


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_values_are_valid(name: str) -> None:
    assert is_valid(yaml.safe_load((CHART / name).read_text()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 2},
        {"web": {"replica": 2}},
        {"baseURL": "http://berth.example"},
        {"settings": {"BERTH_SECRET_KEY": "in a ConfigMap"}},
        {"settings": {"BERTH_LOG_DAYS": 60}},
        {"image": {"digest": "latest"}},
        {"gateway": {"enabled": True}},
        {"priorityClass": {"create": True}},
        {"worker": {"resources": {"limits": {"memory": None}}}},
        {"clusters": [{"name": "East", "secret": "east"}]},
    ],
    ids=json.dumps,
)
def test_values_with_an_error_are_refused_before_anything_is_made(wrong: Body) -> None:
    assert not is_valid(wrong)


def test_every_value_is_described_by_the_schema_and_used() -> None:
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    for key, value in defaults().items():
        assert f".Values.{key}" in text
        described = SCHEMA["properties"][key]
        described = (
            SCHEMA["definitions"][described["$ref"].rsplit("/", 1)[1]] if "$ref" in described else described
        )
        if isinstance(value, dict) and "properties" in described:
            assert set(value) <= set(described["properties"])


# --- What the values make


def requests(name: str) -> str:
    """Return the sum of what all parts request, in words."""
    cpu = memory = 0
    for body in of_kind(name, "Deployment"):
        [container] = body["spec"]["template"]["spec"]["containers"]
        asked = container["resources"]["requests"]
        cpu += body["spec"]["replicas"] * int(asked["cpu"].removesuffix("m"))
        memory += body["spec"]["replicas"] * int(asked["memory"].removesuffix("Mi"))
    return f"{cpu / 1000:g} CPU, {memory} MiB"


@pytest.mark.parametrize("name", ["values-trial.yaml", "values-production.yaml"])
def test_the_sum_of_requests_is_the_one_that_documents_state(name: str) -> None:
    assert requests(name) in (CHART / name).read_text()
    assert requests(name) in (DEPLOY.parent / "docs/operator/install.md").read_text()


def test_a_trial_has_one_of_everything_and_no_drain_waits_for_it() -> None:
    assert {body["spec"]["replicas"] for body in of_kind("values-trial.yaml", "Deployment")} == {1}
    assert of_kind("values-trial.yaml", "PodDisruptionBudget") == []


def test_production_survives_the_loss_of_one_pod_of_each_part() -> None:
    name = "values-production.yaml"
    deployments = of_kind(name, "Deployment")
    assert all(body["spec"]["replicas"] == 2 for body in deployments)
    assert {body["metadata"]["labels"]["app.kubernetes.io/component"] for body in deployments} == PARTS
    [priority] = of_kind(name, "PriorityClass")
    budgets = {
        body["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        for body in of_kind(name, "PodDisruptionBudget")
    }
    assert budgets == PARTS
    for body in deployments:
        pod = body["spec"]["template"]
        assert pod["spec"]["priorityClassName"] == priority["metadata"]["name"]
        for spread in pod["spec"]["topologySpreadConstraints"]:
            assert spread["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert "priorityClassName" not in pods(name)["berth-migrate"]  # Helm runs it before the class is there


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_pod_finds_its_settings_and_secrets(name: str) -> None:
    values = values_in(name)
    for workload, pod in pods(name).items():
        [container] = pod["containers"]
        sources = [kind for one in container.get("envFrom", []) for kind in one]
        env = {one["name"]: one.get("value") for one in container.get("env", [])}
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        volumes = {one["name"]: one.get("secret", {}).get("secretName") for one in pod["volumes"]}
        assert set(mounts) == set(volumes)
        assert ("secretRef" in sources) != values["secret"]["asFiles"]
        assert env.get("BERTH_SECRETS_DIR") == mounts.get("secrets")
        assert volumes.get("secrets", values["secret"]["name"]) == values["secret"]["name"]
        assert "configMapRef" in sources or "BERTH_BASE_URL" in env
        assert pod["enableServiceLinks"] is False  # a Service berth-ssh-jump would set BERTH_SSH_JUMP_PORT
        talks = workload in ("berth-worker", "berth-watcher", "berth-collector")
        wanted = {f"cluster-{one['name']}": one["secret"] for one in values["clusters"] if talks}
        assert {key: of for key, of in volumes.items() if key.startswith("cluster-")} == wanted


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_pod_passes_pod_security_restricted(name: str) -> None:
    for pod in pods(name).values():
        assert not {"hostPID", "hostIPC", "hostNetwork"} & set(pod)
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert all(set(volume) - {"name"} <= {"secret", "emptyDir"} for volume in pod["volumes"])
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_probes_ask_by_a_name_that_berth_answers_to_whatever_its_address() -> None:
    values = copy.deepcopy(defaults()) | {"baseURL": "https://gpu.example:8443/", "extraHosts": ["a.example"]}
    texts = chart().render(values, "elsewhere")
    [settings] = yaml.safe_load_all(texts["settings.yaml"])
    assert settings["data"]["BERTH_BASE_URL"] == "https://gpu.example:8443"
    web = next(body for body in yaml.safe_load_all(texts["web.yaml"]) if body["kind"] == "Deployment")
    [container] = web["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        [header] = container[probe]["httpGet"]["httpHeaders"]
        assert header["value"] in settings["data"]["BERTH_ALLOWED_HOSTS"].split(",")


def test_ssh_through_the_gateway_leads_to_the_jump() -> None:
    [gateway] = of_kind("values-clusters.yaml", "Gateway")
    [route] = of_kind("values-clusters.yaml", "TCPRoute")
    services = {body["metadata"]["name"]: body["spec"] for body in of_kind("values-clusters.yaml", "Service")}
    [listener] = [one for one in gateway["spec"]["listeners"] if one["protocol"] == "TCP"]
    assert route["spec"]["parentRefs"] == [{"name": "berth", "sectionName": listener["name"]}]
    [[backend]] = [rule["backendRefs"] for rule in route["spec"]["rules"]]
    assert backend["port"] == services[backend["name"]]["ports"][0]["port"] == listener["port"]


def test_both_ways_in_lead_both_hosts_to_web_with_a_certificate_for_each() -> None:
    hosts = ["berth.example", "*.berth-workspaces.example"]
    [ingress] = of_kind("values-production.yaml", "Ingress")
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == hosts
    assert [host for one in ingress["spec"]["tls"] for host in one["hosts"]] == hosts
    assert len({one["secretName"] for one in ingress["spec"]["tls"]}) == 2
    assert ingress["metadata"]["annotations"]["cert-manager.io/cluster-issuer"]
    [gateway] = of_kind("values-clusters.yaml", "Gateway")
    *others, route = sorted(
        of_kind("values-clusters.yaml", "HTTPRoute"), key=lambda one: -len(str(one["metadata"]))
    )
    assert route["spec"]["hostnames"] == hosts
    assert [one["hostname"] for one in gateway["spec"]["listeners"] if one["protocol"] == "HTTPS"] == hosts
    assert gateway["metadata"]["annotations"]["cert-manager.io/cluster-issuer"]
    [web] = [body for body in of_kind("values.yaml", "Service") if body["metadata"]["name"] == "berth-web"]
    [port] = web["spec"]["ports"]
    [backend] = [one for rule in route["spec"]["rules"] for one in rule["backendRefs"]]
    assert (backend["name"], backend["port"]) == ("berth-web", port["port"])
    assert all("backendRefs" not in rule for one in others for rule in one["spec"]["rules"])
