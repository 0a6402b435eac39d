"""Pages for each kind of person in each phase, without scripts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.credentials import ssh_keys
from storage.mounts import homes
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.reading import words
from workloads.models import Image
from workspaces.api.representation import workspace_json
from workspaces.api.ssh_config import domain_of
from workspaces.models import Desired, Phase, Workspace
from workspaces.ssh_jump.host_key import ready_key

pytestmark = pytest.mark.django_db

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMeNzYQ3UTnSB1FYXV6w8yJYZVjrJ5Ps2JZz4zQmiTDr me@laptop"


def test_who_is_not_signed_in_is_asked_to(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    for path in ("/", "/launch/", f"/workspaces/{workspace.pk}/", f"/workspaces/{workspace.pk}/logs/"):
        response = Client().get(path)
        assert response.status_code == 302
        assert response["Location"] == f"/sign-in/?next={path}"


def test_the_first_visit_launches_a_sample_with_one_click(cast: Cast) -> None:
    bob = browser(cast.bob)
    page = bob.get("/")
    assert "Your first workspace" in words(page)
    assert "ssh-keygen -t ed25519" in words(page)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.content.decode()))
    del hidden["csrfmiddlewaretoken"]
    response = bob.post("/launch/", hidden)
    workspace = Workspace.objects.get()
    assert response["Location"] == f"/workspaces/{workspace.pk}/"
    assert (workspace.owner, workspace.flavor) == (cast.bob.user, cast.flavor)


def test_a_key_is_added_on_the_first_page(cast: Cast) -> None:
    bob = browser(cast.bob)
    response = bob.post("/add-ssh-key/", {"public_key": KEY}, follow=True)
    assert "Your SSH key was added" in words(response)
    assert "Add your SSH key" not in words(response)
    assert cast.bob.user.ssh_keys.get().name == "me@laptop"


def test_a_refused_key_says_what_to_do(cast: Cast) -> None:
    response = browser(cast.bob).post("/add-ssh-key/", {"public_key": "nonsense"})
    assert response.status_code == 422
    assert ">nonsense</textarea>" in response.content.decode()
    assert "ssh-keygen -t ed25519" in words(response)
    assert "This is not an OpenSSH public key." in words(response)


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_a_page(cast: Cast, phase: Phase) -> None:
    workspace = make_workspace(cast, cast.bob, phase)
    bob = browser(cast.bob)
    assert f"status-{phase}" in bob.get("/").content.decode()
    for tab in ("", "logs/", "metrics/", "settings/"):
        page = bob.get(f"/workspaces/{workspace.pk}/{tab}")
        assert page.status_code == 200, tab
        assert f"status-{phase}" in page.content.decode(), tab


def test_a_start_shows_ten_steps_and_which_is_under_way(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert page.count('<li class="is-') == 10
    assert page.count('<li class="is-done"') == 5
    assert "Pulling the image" in page


def test_a_ready_workspace_offers_jupyter_and_ssh(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    ssh_keys.add(cast.bob, "laptop", KEY)
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/")
    text = page.content.decode()
    assert f'href="/workspaces/{workspace.pk}/open/" target="_blank" rel="noopener"' in text
    assert "token=" not in text
    assert f"ssh -o HostKeyAlias=berth-{workspace.pk} jovyan@127.0.1.5" in words(page)
    assert 'href="vscode://vscode-remote/ssh-remote+jovyan@127.0.1.5:22/home/jovyan"' in text
    assert workspace.secret.host_key_fingerprint in text


def test_with_the_jump_the_page_offers_a_name_that_stays_and_its_file(cast: Cast, settings: Any) -> None:
    settings.SSH_JUMP_HOST = "berth.example"
    ready_key("")
    workspace = make_workspace(cast, cast.bob)
    ssh_keys.add(cast.bob, "laptop", KEY)
    bob = browser(cast.bob)
    page = bob.get(f"/workspaces/{workspace.pk}/")
    assert "ssh exp-1.bob.berth Copy" in words(page)
    assert 'href="vscode://vscode-remote/ssh-remote+exp-1.bob.berth/home/jovyan"' in page.content.decode()
    for shown in (page, bob.get("/profile/")):
        assert 'href="/ssh/config/" download' in shown.content.decode()
    file = bob.get("/ssh/config/")
    assert file["Content-Disposition"] == 'attachment; filename="berth.config"'
    config = workspace_json(workspace, cast.bob)["endpoints"]["ssh"]["by_name"]["config"]
    assert file.content.decode() == config
    assert "\nHost *.bob.berth\n    User jovyan\n    ProxyJump berth-jump-" in config

    Image.objects.update(username="ubuntu")
    Workspace.objects.update(name="My “tea” pot")
    workspace = Workspace.objects.get()
    by_name = workspace_json(workspace, cast.bob)["endpoints"]["ssh"]["by_name"]
    assert by_name["command"] == "ssh ubuntu@my-tea-pot.bob.berth"
    assert domain_of("Ann.O@uni.example", workspace.pk) == "ann-o-uni-example.berth"
    assert domain_of("김", workspace.pk) == f"{workspace.pk.hex[:8]}.berth"


def test_without_the_gateway_jupyter_opens_at_its_own_address(cast: Cast, settings: Any) -> None:
    settings.WORKSPACE_DOMAIN = ""
    workspace = make_workspace(cast, cast.bob)
    assert 'id="in-clear-text"' in browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    answer = browser(cast.bob).get(f"/workspaces/{workspace.pk}/open/")
    assert re.fullmatch(r"http://127\.0\.1\.5:8888/login\?next=%2Flab&token=.+", answer["Location"])


def test_the_jupyter_link_of_a_stopped_workspace_leads_to_its_page(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    answer = browser(cast.bob).get(f"/workspaces/{workspace.pk}/open/")
    assert answer["Location"] == f"/workspaces/{workspace.pk}/"


def test_nobody_else_gets_the_link(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    for other in (cast.alice, cast.victor, cast.admin):
        for path in (
            "/?show=everyone",
            f"/workspaces/{workspace.pk}/",
            f"/workspaces/{workspace.pk}/settings/",
        ):
            page = browser(other).get(path)
            assert page.status_code == 200
            assert "token=" not in page.content.decode()
            assert "HostKeyAlias" not in page.content.decode()
            assert "GREETING" not in page.content.decode()


def test_a_failed_workspace_says_what_and_why_with_the_raw_text_folded(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.FAILED)
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/")
    assert "It stopped at the step “Image”" in words(page)
    assert re.search(r"<details id=\"raw\">.*Back-off pulling image", page.content.decode(), re.DOTALL)


def test_stop_and_delete_by_buttons(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = browser(cast.bob)
    assert bob.post(f"/workspaces/{workspace.pk}/stop/").status_code == 302
    workspace.refresh_from_db()
    assert workspace.desired == Desired.STOPPED
    assert "Also delete" not in words(bob.get(f"/workspaces/{workspace.pk}/delete/"))
    homes.add_disk(cast.bob.user, cast.demo, cast.cluster, workspace.pk, "exp-1", 1024)
    assert "Deletes exp-1 disk with all files" in words(bob.get(f"/workspaces/{workspace.pk}/delete/"))
    bob.post(f"/workspaces/{workspace.pk}/delete/", {"delete_disk": "on"})
    workspace.refresh_from_db()
    assert (workspace.desired, workspace.delete_disk) == (Desired.DELETED, True)


@pytest.mark.parametrize(
    ("verb", "lost", "kept"),
    [
        ("stop", "running kernels", "your home directory, with packages installed by pip"),
        (
            "restart",
            "unsaved changes in notebooks",
            "its GPUs: it does not queue again",
        ),
        ("delete", "repository and secrets, permanently", "your home, on the page “Storage”"),
    ],
)
def test_what_is_lost_is_said_before_it_is_done(cast: Cast, verb: str, lost: str, kept: str) -> None:
    workspace = make_workspace(cast, cast.bob)
    question = words(browser(cast.bob).get(f"/workspaces/{workspace.pk}/{verb}/"))
    assert lost in question
    assert kept in question
    assert "who may be using it" not in question
    workspace.refresh_from_db()
    assert workspace.desired == Desired.RUNNING


def test_an_owner_is_told_whose_it_is_that_they_stop(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert "It belongs to bob" in words(browser(cast.alice).get(f"/workspaces/{workspace.pk}/stop/"))


def test_a_waiting_workspace_loses_only_its_place(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.WAITING)
    question = words(browser(cast.bob).get(f"/workspaces/{workspace.pk}/stop/"))
    assert "It only loses its place in the queue" in question
    assert "running kernels" not in question


def test_where_nothing_is_to_be_asked_the_page_itself_comes(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    for verb in ("start", "stop", "restart", "extend"):
        answer = browser(cast.bob).get(f"/workspaces/{workspace.pk}/{verb}/")
        assert answer["Location"] == f"/workspaces/{workspace.pk}/"


def test_a_workspace_that_stops_soon_is_extended(cast: Cast) -> None:
    soon = timezone.now() + timedelta(minutes=10)
    workspace = make_workspace(cast, cast.bob, stops_at=soon, max_runtime_minutes=240)
    bob = browser(cast.bob)
    assert "+2 h" in words(bob.get(f"/workspaces/{workspace.pk}/"))
    page = bob.post(f"/workspaces/{workspace.pk}/extend/", follow=True)
    workspace.refresh_from_db()
    assert workspace.stops_at == soon + timedelta(minutes=120)
    assert "It now runs until" in words(page)


def test_a_key_is_added_on_the_page_that_needs_it(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = browser(cast.bob)
    page = bob.get(f"/workspaces/{workspace.pk}/")
    assert "ssh-keygen -t ed25519" in words(page)
    sent = {"public_key": KEY, "next": f"/workspaces/{workspace.pk}/"}
    assert bob.post("/add-ssh-key/", sent)["Location"] == f"/workspaces/{workspace.pk}/"
    cast.bob.user.ssh_keys.all().delete()
    assert bob.post("/add-ssh-key/", sent | {"next": "https://elsewhere.example/"})["Location"] == "/"


def test_a_viewer_may_look_and_not_touch(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    victor = browser(cast.victor)
    page = victor.get(f"/workspaces/{workspace.pk}/")
    assert 'id="stop"' not in page.content.decode()
    assert "You cannot launch workspaces in any tenant yet" in words(victor.get("/launch/"))


def test_an_unknown_action_is_no_page(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert browser(cast.bob).post(f"/workspaces/{workspace.pk}/explode/").status_code == 404


def test_settings_show_the_same_launch_for_a_script(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    page = words(browser(cast.bob).get(f"/workspaces/{workspace.pk}/settings/"))
    assert "curl -X POST http://testserver/api/v1/workspaces/" in page
    assert "s3cret-value" not in page


def test_no_page_has_inline_script_or_style(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = browser(cast.bob)
    for path in ("/", "/launch/", f"/workspaces/{workspace.pk}/", f"/workspaces/{workspace.pk}/logs/"):
        page = bob.get(path)
        text = page.content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|javascript:", text)
        assert "default-src 'none'" in page["Content-Security-Policy"]
