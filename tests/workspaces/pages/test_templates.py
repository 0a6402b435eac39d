"""Templates of a launch: saved by an owner, read by members, without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quotas.models import Flavor
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_flavor
from tests.workspaces.reading import chosen, text_of, value_of, words
from workspaces.models import Template, Workspace

pytestmark = pytest.mark.django_db

SENT = {
    "tenant": "demo",
    "image": "jupyter",
    "flavor": "a100-1",
    "name": "exp",
    "env": "COURSE=3",
    "secret_env": "TOKEN=s3cret-value",
    "repository": "https://bob:s3cret-value@e.org/a.git",
    "disk_gib": "3",
    "apps": "TensorBoard 6006 tenant",
    "template_name": "Course week 3",
}


def test_an_owner_saves_the_form_and_a_member_starts_from_it(cast: Cast) -> None:
    alice, bob = browser(cast.alice), browser(cast.bob)
    there = alice.post("/launch/templates/", SENT)["Location"]
    template = Template.objects.get()
    assert there == f"/launch/?template={template.pk}"
    assert "s3cret-value" not in str(template.body)
    assert not Workspace.objects.exists()

    page = bob.get(there)
    assert (value_of(page, "name"), value_of(page, "disk_gib")) == ("Course week 3", "3")
    assert (chosen(page, "flavor"), value_of(page, "repository")) == ("a100-1", "https://e.org/a.git")
    assert "TensorBoard 6006 tenant" in text_of(page)
    assert "COURSE=3" in text_of(page) and ">\nTOKEN=<" in page.content.decode()
    assert "This template does not exist." in words(browser(cast.carol).get(there))

    alice.post("/launch/templates/", SENT | {"disk_gib": "4"})  # one of the same name is replaced
    assert Template.objects.get().body["disk_mib"] == 4096
    alice.post(f"/launch/templates/{template.pk}/delete/")
    assert not Template.objects.exists()


def test_what_a_template_has_that_is_not_offered_any_more_is_said(cast: Cast) -> None:
    alice = browser(cast.alice)
    make_flavor(cast, 2)
    there = alice.post("/launch/templates/", SENT | {"flavor": "a100-2"})["Location"]
    assert alice.get(there).context["fallen"] == []
    Flavor.objects.filter(slug="a100-2").delete()
    page = alice.get(there)
    (said,) = page.context["fallen"]
    assert "a100-2" in said and said in words(page)
    assert chosen(page, "flavor") == "a100-1"


def test_a_value_of_several_lines_comes_back_from_a_template_and_the_settings_page(cast: Cast) -> None:
    alice, config = browser(cast.alice), "Host *\nEND\n\n    User me"
    sent = SENT | {
        "env": f"A=1\r\nCONFIG<<END2\r\n{config.replace(chr(10), chr(13) + chr(10))}\r\nEND2\r\nB=2"
    }
    there = alice.post("/launch/templates/", sent)["Location"]
    env = {"A": "1", "CONFIG": config, "B": "2"}
    assert Template.objects.get().body["env"] == env
    form = alice.get(there).context["form"]
    assert form.fields["env"].to_python(form["env"].value()) == env
    assert alice.post("/launch/", sent).status_code == 302
    row = Workspace.objects.get()
    form = alice.get(f"/workspaces/{row.pk}/settings/").context["form"]
    assert (
        form.fields["env"].to_python(form["env"].value()) == row.env == env
        and not form.fields["env"].disabled
    )
    page = alice.post("/launch/", sent | {"env": "A<<END\nx"})
    assert set(page.context["form"].errors) == {"env"}


@pytest.mark.parametrize("changes", [{"template_name": "-"}, {"template_name": ""}, {"image": "nothing"}])
def test_a_template_that_could_not_be_launched_is_not_saved(cast: Cast, changes: dict[str, str]) -> None:
    assert browser(cast.alice).post("/launch/templates/", SENT | changes).status_code == 422
    assert not Template.objects.exists()


@pytest.mark.slow
def test_a_size_to_find_comes_back_as_it_was_asked_for(cast: Cast) -> None:
    find = {"flavor": "*", "gpus": "2", "gpu_memory_gb": "40", "cpu": "6", "memory_gib": "32"}
    alice = browser(cast.alice)
    page = alice.get(alice.post("/launch/templates/", SENT | find)["Location"])
    assert chosen(page, "flavor") == "*"
    assert [value_of(page, name) for name in ("gpus", "cpu", "memory_gib")] == ["2", "6", "32"]
    assert page.context["forecast"]["starts_now"]


def test_scripts_of_owners_keep_templates_and_members_read_them(cast: Cast) -> None:
    launch = {"image": "jupyter", "flavor": "a100-1", "env": {"A": "1"}, "secret_names": ["TOKEN"]}
    body = {"tenant": "demo", "name": "Week 3", "launch": launch}
    alice, bob = browser(cast.alice), browser(cast.bob)

    def asked(client: Any, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = client.generic(method, f"/api/v1/{path}", json.dumps(body), content_type="application/json")
        return answer.status_code, answer.json() if answer.content else None

    status, made = asked(alice, "POST", "templates/", body)
    assert (status, made["launch"], made["created_by"]) == (201, launch, "alice")
    assert asked(alice, "POST", "templates/", body)[1]["error"]["code"] == "name_taken"
    assert asked(bob, "GET", "templates/?tenant=demo")[1]["results"] == [made]
    own = f"templates/{made['id']}/"
    assert asked(alice, "PATCH", own, {"name": "Week 4"})[1]["launch"] == launch
    assert asked(alice, "PATCH", own, {"launch": {"image": "jupyter", "flavor": "nothing"}})[0] == 422
    assert asked(alice, "PATCH", own, {"launch": launch | {"secret_env": {"A": "b"}}})[0] == 400
    assert asked(alice, "DELETE", own)[0] == 204
    assert asked(bob, "GET", own)[0] == 404
