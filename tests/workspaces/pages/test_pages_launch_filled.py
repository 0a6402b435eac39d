"""First values of the launch form: from the last launch, a link, or a workspace that is launched again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.reading import chosen, value_of, words
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


# --- Filled in


def test_the_form_remembers_the_last_launch(cast: Cast) -> None:
    make_workspace(
        cast, cast.bob, repository="https://example.org/a.git", disk_mib=2048, max_runtime_minutes=90
    )
    page = browser(cast.bob).get("/launch/")
    assert (value_of(page, "repository"), value_of(page, "disk_gib")) == ("https://example.org/a.git", "2")
    assert '<option value="90" selected>90 minutes</option>' in page.content.decode()
    assert "s3cret-value" not in page.content.decode()
    assert value_of(browser(cast.bob).get("/launch/?fresh"), "repository") is None


def test_a_link_fills_in_the_form_and_launches_nothing(cast: Cast) -> None:
    link = "/launch/?image=jupyter&flavor=a100-1&name=shared&disk_gib=5&repository=https://e.org/a.git&max_runtime_minutes=90"
    page = browser(cast.bob).get(link)
    assert (chosen(page, "image"), chosen(page, "flavor")) == ("jupyter", "a100-1")
    assert (value_of(page, "name"), value_of(page, "disk_gib")) == ("shared", "5")
    assert '<option value="90" selected>' in page.content.decode()
    assert "A link filled in this form." in words(page)
    assert "Part of this link was not used" not in words(page)
    assert not Workspace.objects.exists()


@pytest.mark.parametrize(
    "link", ["image=jupyter&flavor=a100-1", "repository=https://e.org/b.git", "env=TOKEN"]
)
def test_a_link_that_describes_a_launch_uses_nothing_of_the_last_launch(cast: Cast, link: str) -> None:
    make_workspace(cast, cast.bob, repository="https://e.org/private.git", env={"KEY": "mine"})
    page = browser(cast.bob).get(f"/launch/?{link}").content.decode()
    assert "private.git" not in page
    assert "KEY=mine" not in page


def test_a_link_to_a_size_alone_keeps_the_last_launch(cast: Cast) -> None:
    make_workspace(cast, cast.bob, repository="https://e.org/private.git")
    page = browser(cast.bob).get("/launch/?flavor=a100-1")
    assert "private.git" in page.content.decode()
    assert "A link filled in this form." not in words(page)


def test_a_link_may_name_a_pool(cast: Cast) -> None:
    assert chosen(browser(cast.bob).get("/launch/?pool=a100"), "flavor") == "a100-1"
    assert "There is no pool “b200”" in words(browser(cast.bob).get("/launch/?pool=b200"))


def test_a_link_works_after_the_sign_in(cast: Cast) -> None:
    client = Client()
    sent_away = client.get("/launch?name=shared&flavor=a100-1", follow=True)
    sign_in = sent_away.redirect_chain[-1][0]
    assert sign_in == "/sign-in/?next=/launch/%3Fname%3Dshared%26flavor%3Da100-1"
    page = client.post(sign_in, {"username": "bob", "password": "bob-password"}, follow=True)
    assert value_of(page, "name") == "shared"


@pytest.mark.parametrize(
    "link",
    [
        {
            "image=nope": "Image: the link says “nope”",
            "flavor=nope": "Size: the link says “nope”",
            "tenant=second": "Tenant: the link says “second”, which you cannot choose here.",
            "disk_gib=-1": "Local disk: the link says “-1”",
            "max_runtime_minutes=0": "Enter minutes, from 1 to 525600.",
            "notify=maybe": "Write 1 or 0.",
            "env=LD_PRELOAD": "“LD_PRELOAD” was left out",
            "name=%00": "It has a NUL character.",
        },
        {
            "tenant=nowhere": "Tenant: the link says “nowhere”, which you cannot choose here.",
            "name=" + "x" * 200: "…”.",
            "colour=red": "The link also says “colour”",
            "env=A%3D1": "“A=1” was left out",
        },
        {"again=nonsense": "does not exist"},
        {"again=00000000-0000-4000-8000-000000000000": "does not exist"},
    ],
    ids=["one of each", "another of each", "no id", "nobody's id"],
)
def test_values_of_a_link_that_are_refused_are_reported(cast: Cast, link: dict[str, str]) -> None:
    page = browser(cast.bob).get(f"/launch/?{'&'.join(link)}")
    assert page.status_code == 200
    for part, said in link.items():
        assert said in words(page), part


def test_markup_in_a_link_is_only_text(cast: Cast) -> None:
    hostile = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
    names = ("name", "image", "flavor", "repository", "tenant", "env", "pool", "gpus", hostile)
    bob = browser(cast.bob)
    for link in ("&".join(f"{name}={hostile}" for name in names), f"again={hostile}", f"tenant={hostile}"):
        page = bob.get(f"/launch/?{link}")
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()


def test_a_link_names_variables_for_the_reader_to_fill_in(cast: Cast) -> None:
    page = browser(cast.bob).get("/launch/?env=WANDB_PROJECT&env=HF_HOME").content.decode()
    assert "WANDB_PROJECT=\nHF_HOME=</textarea>" in page
    assert '<details class="fold" open id="more">' in page


# --- Launch again


@pytest.mark.parametrize("phase", [Phase.STOPPED, Phase.FAILED])
def test_a_workspace_at_rest_is_launched_again_with_its_settings(cast: Cast, phase: Phase) -> None:
    workspace = make_workspace(cast, cast.bob, phase, name="exp-2", disk_mib=3072)
    make_workspace(cast, cast.bob, name="newest", disk_mib=0)
    bob = browser(cast.bob)
    link = f"/launch/?again={workspace.pk}"
    assert f'href="{link}"' in bob.get(f"/workspaces/{workspace.pk}/").content.decode()
    page = bob.get(link)
    assert (value_of(page, "name"), value_of(page, "disk_gib")) == ("exp-3", "3")
    assert "GREETING=hello" in page.content.decode()
    assert "s3cret-value" not in page.content.decode()


def test_a_deleted_workspace_is_launched_again_under_its_name(cast: Cast) -> None:
    deleted = make_workspace(cast, cast.bob, Phase.STOPPED, deleted_at=timezone.now() - timedelta(days=1))
    bob = browser(cast.bob)
    assert f"/launch/?again={deleted.pk}" in bob.get("/?show=deleted").content.decode()
    assert value_of(bob.get(f"/launch/?again={deleted.pk}"), "name") == "exp-1"


def test_settings_of_another_person_come_without_their_environment(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, disk_mib=3072, repository="https://e.org/private.git")
    page = browser(cast.alice).get(f"/launch/?again={workspace.pk}")
    assert value_of(page, "disk_gib") == "3"
    assert "GREETING" not in page.content.decode()
    assert "private.git" not in page.content.decode()


def test_a_workspace_of_another_tenant_cannot_be_launched_again(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    page = browser(cast.carol).get(f"/launch/?again={workspace.pk}")
    assert "does not exist" in words(page)
    assert "exp-1" not in words(page)
