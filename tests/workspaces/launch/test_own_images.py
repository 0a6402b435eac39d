"""Images by reference: what a tenant's list of registries allows, at each way to a run."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.errors import Invalid
from accounts.models import AuditEntry
from clusters.references import allows, is_latest, repository, valid_prefixes
from quotas.models import TenantLimit
from tests.cast import Cast
from tests.shared.clients import ask, browser, script
from tests.shared.played_api import PlayedApi
from tests.workspaces.play import Play
from workloads.models import Image
from workspaces.launch.clone import clone
from workspaces.models import Template, Workspace
from workspaces.runs import lifecycle

MINE = "registry.example/team/torch:2"
OTHER = "registry.example/team/jax:1"
BODY = {"tenant": "demo", "name": "exp", "flavor": "a100-1"}
FORM = {"tenant": "demo", "name": "exp", "flavor": "a100-1", "image": "@", "notify": "on"}


@pytest.mark.parametrize(
    ("reference", "whole"),
    [
        ("ubuntu", "docker.io/library/ubuntu"),
        ("ubuntu:24.04", "docker.io/library/ubuntu"),
        ("index.docker.io/ubuntu", "docker.io/library/ubuntu"),
        ("team/app:1", "docker.io/team/app"),
        ("localhost/app", "localhost/app"),
        ("Registry.Example:5000/a/b:v1@sha256:" + "0" * 64, "registry.example:5000/a/b"),
    ],
)
def test_a_reference_is_completed_as_runtimes_do(reference: str, whole: str) -> None:
    assert repository(reference) == whole


@pytest.mark.parametrize(
    ("prefix", "reference", "is_allowed"),
    [
        ("registry.example/team/", "registry.example/team/a/b:1", True),
        ("registry.example/team", "registry.example/team:1", True),
        ("registry.example/team", "registry.example/team-b/a", False),
        ("registry.example/team", "registry.example/a", False),
        ("registry.example/team", "registry.example:5000/team/a", False),
        ("registry.example", "registry.example.evil.example/team/a", False),
        ("REGISTRY.example/", "registry.EXAMPLE/a", True),
        ("docker.io/library/", "ubuntu:24.04", True),
        ("docker.io/library", "someone/ubuntu", False),
        ("docker.io/ubuntu", "ubuntu:24.04", True),
        ("docker.io/ubuntu", "ubuntu/ubuntu", True),
        ("docker.io/ubuntu", "someone/ubuntu", False),
        ("index.docker.io/library", "ubuntu", True),
        ("registry.example", "registry.example/a@sha256:" + "0" * 64, True),
    ],
)
def test_a_prefix_ends_at_a_border_of_the_path(prefix: str, reference: str, is_allowed: bool) -> None:
    assert allows([prefix], reference) is is_allowed
    assert not allows([], reference)


@pytest.mark.parametrize(
    "line", ["http://r.example", "team", "r.example/a:1", "r.example//a", "*", "r.example/A"]
)
def test_a_line_that_is_no_registry_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        valid_prefixes(f"registry.example/team/\n{line}")


def test_only_the_latest_is_pulled_again() -> None:
    references = ("a", "a:latest", "r.example:5000/a", "a:1", "a@sha256:" + "0" * 64)
    assert [is_latest(one) for one in references] == [True, True, True, False, False]


@pytest.fixture
def allowed(cast: Cast) -> TenantLimit:
    return TenantLimit.objects.create(tenant=cast.demo, image_prefixes="registry.example/team/\n")


def launch(cast: Cast, **body: Any) -> Any:
    return ask(script(cast.bob), "POST", "workspaces/", BODY | body)


def take_away() -> None:
    TenantLimit.objects.update(image_prefixes="")


@pytest.mark.django_db
class TestLaunch:
    def test_it_is_launched_by_its_reference_and_named_by_it(self, cast: Cast, allowed: TenantLimit) -> None:
        shown = launch(cast, image_reference=MINE).json()
        assert shown["image_reference"] == MINE
        Image.objects.filter(tenant=cast.demo).update(is_active=False)  # the list of registries decides alone
        again = launch(cast, name="two", image=shown["image"]).json()  # its slug stands for it in this tenant
        assert (again["image_reference"], Image.objects.filter(tenant=cast.demo).count()) == (MINE, 1)
        catalogue = ask(script(cast.bob), "GET", "images/").json()["results"]
        assert [one["slug"] for one in catalogue] == ["jupyter"]

    @pytest.mark.parametrize(
        ("body", "status", "code", "field"),
        [
            ({"image_reference": "docker.io/team/a"}, 422, "image_not_allowed", "image_reference"),
            ({"image_reference": "http://registry.example/team/a"}, 422, "invalid", "image_reference"),
            ({"image_reference": "registry.example/team/a b"}, 422, "invalid", "image_reference"),
            ({"image_reference": MINE, "image": "jupyter"}, 422, "invalid", "image_reference"),
            ({}, 400, "invalid", "image"),
        ],
        ids=str,
    )
    def test_what_may_not_be_used_is_refused_beside_its_field(
        self, cast: Cast, allowed: TenantLimit, body: dict[str, str], status: int, code: str, field: str
    ) -> None:
        answer = launch(cast, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert field in answer.json()["error"]["fields"]
        assert not Image.objects.exclude(tenant=None).exists()

    def test_a_list_of_one_tenant_says_nothing_about_another(self, cast: Cast, allowed: TenantLimit) -> None:
        slug = launch(cast, image_reference=MINE).json()["image"]
        carols = BODY | {"tenant": "second"}
        refused = ask(script(cast.carol), "POST", "workspaces/", carols | {"image_reference": MINE})
        assert refused.json()["error"]["code"] == "image_not_allowed"
        assert "registry.example/team/," not in refused.content.decode()
        guessed = ask(script(cast.carol), "POST", "workspaces/", carols | {"image": slug}).json()
        missing = ask(script(cast.carol), "POST", "workspaces/", carols | {"image": "own-0"}).json()
        assert str(guessed).replace(slug, "own-0") == str(missing)

    def test_an_estimate_writes_no_image(self, cast: Cast, allowed: TenantLimit) -> None:
        assert ask(script(cast.bob), "POST", "estimate/", BODY | {"image_reference": MINE}).status_code == 200
        assert not Image.objects.exclude(tenant=None).exists()

    def test_a_job_takes_one_and_its_duplicate_too(self, cast: Cast, allowed: TenantLimit) -> None:
        bob = script(cast.bob, "read", "jobs")  # type: ignore[arg-type]
        body = BODY | {"command": ["true"], "image_reference": MINE}
        job = ask(bob, "POST", "jobs/", body).json()
        assert job["image_reference"] == MINE
        assert ask(bob, "POST", f"jobs/{job['id']}/duplicate/", {}).json()["image_reference"] == MINE
        take_away()
        refused = ask(bob, "POST", f"jobs/{job['id']}/duplicate/", {})
        assert refused.json()["error"]["code"] == "image_not_allowed"


@pytest.mark.django_db
class TestForm:
    def test_the_form_offers_it_where_the_tenant_may(self, cast: Cast, allowed: TenantLimit) -> None:
        assert "registry.example/team/" in browser(cast.bob).get("/launch/").content.decode()
        assert 'value="@"' not in browser(cast.carol).get("/launch/").content.decode()

    @pytest.mark.parametrize("reference", ["", "quay.example/a", "http://registry.example/team/a"])
    def test_a_fault_stands_beside_the_reference(
        self, cast: Cast, allowed: TenantLimit, reference: str
    ) -> None:
        page = browser(cast.bob).post("/launch/", FORM | {"image_reference": reference})
        assert (page.status_code, set(page.context["form"].errors)) == (422, {"image_reference"})
        assert 'id="id_image_reference_error"' in page.content.decode()
        assert bool(page.context.get("fault")) == bool(reference)  # beside the form, too

    @pytest.mark.slow
    def test_the_next_form_and_a_template_begin_with_it(self, cast: Cast, allowed: TenantLimit) -> None:
        alice = browser(cast.alice)
        sent = FORM | {"image_reference": MINE, "template_name": "Own"}
        assert alice.post("/launch/templates/", sent).status_code == 302
        assert Template.objects.get().body["image_reference"] == MINE
        assert alice.post("/launch/", sent).status_code == 302
        row = Workspace.objects.get()
        for address in (
            "/launch/",
            f"/launch/?again={row.pk}",
            f"/launch/?template={Template.objects.get().pk}",
        ):
            form = alice.get(address).context["form"]
            assert (form["image"].value(), form["image_reference"].value()) == ("@", MINE)
        linked = alice.get(f"/launch/?image_reference={OTHER}").context["form"]
        assert (linked["image"].value(), linked["image_reference"].value()) == ("@", OTHER)

    def test_the_settings_page_changes_to_one(self, cast: Cast, allowed: TenantLimit) -> None:
        launch(cast, image="jupyter")
        row = Workspace.objects.get()
        page = browser(cast.bob).get(f"/workspaces/{row.pk}/settings/")
        sent = {name: page.context["form"][name].value() or "" for name in ("name", "flavor", "repository")}
        sent |= {"env": "", "notify": "on", "image": "@"}
        address = f"/workspaces/{row.pk}/settings/"
        refused = browser(cast.bob).post(address, sent | {"image_reference": "quay.example/a"})
        assert "image_reference" in refused.context["form"].errors
        assert browser(cast.bob).post(address, sent | {"image_reference": MINE}).status_code == 302
        assert Workspace.objects.get().image.reference == MINE
        assert AuditEntry.objects.filter(action="workspace.change", data__image=MINE).exists()


@pytest.mark.django_db
class TestRuns:
    def test_what_runs_goes_on_and_the_next_start_is_refused(self, cast: Cast, allowed: TenantLimit) -> None:
        play = Play(cast, PlayedApi(), image="", image_reference=MINE)
        play.begin_ready()
        container = play.pod()["spec"]["containers"][0]
        assert (container["image"], container["imagePullPolicy"]) == (MINE, "IfNotPresent")
        take_away()
        assert play.look().phase == "ready"
        for refused in (
            lambda: lifecycle.restart(cast.alice, play.row),
            lambda: clone(cast.alice, play.row),
        ):
            with pytest.raises(Invalid) as refusal:
                refused()
            assert refusal.value.code == "image_not_allowed"
        assert play.look().phase == "ready"
        play.stop()
        with pytest.raises(Invalid):
            lifecycle.start(cast.alice, play.row)
        assert (
            ask(script(cast.alice), "PATCH", f"workspaces/{play.id}/", {"image": "jupyter"}).status_code
            == 200
        )
        assert lifecycle.start(cast.alice, play.row)

    def test_a_waiting_one_fails_at_its_start(self, cast: Cast, allowed: TenantLimit) -> None:
        play = Play(cast, PlayedApi(), image="", image_reference=MINE)
        take_away()
        row = play.until_phase("failed")
        assert ((row.failure or {})["code"], play.api.of("Pod")) == ("image_not_allowed", [])

    def test_it_is_changed_at_a_restart_and_back_by_one_click(self, cast: Cast, allowed: TenantLimit) -> None:
        play = Play(cast, PlayedApi(), image="", image_reference=MINE)
        run = play.begin_ready().run
        changed = ask(
            script(cast.alice), "PATCH", f"workspaces/{play.id}/", {"image_reference": OTHER}
        ).json()
        assert (changed["image_reference"], changed["next_image_reference"]) == (MINE, OTHER)
        assert changed["pending_restart"] == ["image"]
        lifecycle.restart(cast.alice, play.row)
        play.until(lambda now: now.phase == "ready" and now.run != run)
        assert play.pod()["spec"]["containers"][0]["image"] == OTHER
        browser(cast.alice).post(f"/workspaces/{play.id}/instead/", {"image": play.row.previous_image})
        assert ask(script(cast.alice), "GET", f"workspaces/{play.id}/").json()["next_image_reference"] == MINE
