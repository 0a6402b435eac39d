import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from accounts import signals
from accounts.access import Actor
from accounts.credentials import ssh_keys, tokens
from accounts.errors import Conflict, Invalid, NotAllowed, NotThere
from accounts.models import AuditEntry, SSHKey
from tests.accounts.people import People, heard

# A key of a hardware token, as `ssh-keygen -t ed25519-sk` writes it (tests have no such token).
SK_KEY = (
    "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZ"
    "GhscHR4fAAAABHNzaDo="
)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[str, str]]:
    """A public key made by ssh-keygen and the fingerprint that ssh-keygen prints for it."""

    def made(*options: str) -> tuple[str, str]:
        path: Path = tmp_path_factory.mktemp("keys") / "id"
        subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", "alice@laptop", *options, "-f", path], check=True)
        listed = subprocess.run(
            ["ssh-keygen", "-l", "-f", f"{path}.pub"], capture_output=True, text=True, check=True
        )
        return path.with_suffix(".pub").read_text(), listed.stdout.split()[1]

    return made


@pytest.fixture(scope="module")
def ed25519(make: Callable[..., tuple[str, str]]) -> str:
    return make("-t", "ed25519")[0]


@pytest.mark.parametrize(
    "options",
    [
        ("-t", "ed25519"),
        ("-t", "ecdsa", "-b", "256"),
        ("-t", "ecdsa", "-b", "384"),
        ("-t", "ecdsa", "-b", "521"),
        ("-t", "rsa", "-b", "2048"),
    ],
    ids=lambda options: "-".join(options[1::2]),
)
def test_keys_of_ssh_keygen_are_accepted(
    make: Callable[..., tuple[str, str]], options: tuple[str, ...]
) -> None:
    text, fingerprint = make(*options)
    key = ssh_keys.parse(text)
    assert key.fingerprint == fingerprint
    assert key.line == " ".join(text.split()[:2])


def test_keys_of_hardware_tokens_are_taken(tmp_path: Path) -> None:
    (tmp_path / "id.pub").write_text(SK_KEY)
    listed = subprocess.run(["ssh-keygen", "-l", "-f", tmp_path / "id.pub"], capture_output=True, text=True)
    assert ssh_keys.parse(SK_KEY).fingerprint == listed.stdout.split()[1]


def test_the_comment_is_not_kept(ed25519: str) -> None:
    assert ssh_keys.parse(f"  {ed25519.strip()} and a long comment\r\n").line == " ".join(ed25519.split()[:2])


def test_a_private_key_is_refused_and_said_to_be_one(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", tmp_path / "id"], check=True)
    private = (tmp_path / "id").read_text()
    with pytest.raises(Invalid) as refusal:
        ssh_keys.parse(private)
    assert "private key" in refusal.value.message
    assert private.split()[4] not in str(vars(refusal.value))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not an OpenSSH public key"),
        ("ssh-ed25519", "body is missing"),
        ("ssh-ed25519 AAAA", "damaged"),
        ("ssh-ed25519 ????", "damaged"),
        ("ssh-dss AAAAB3NzaC1kc3M=", "DSA"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA", "certificate"),
        ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----", "another format"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "another format"),
        ("ssh-ed25519 " + "A" * 20_000, "one line"),
    ],
)
def test_what_is_no_key_is_refused_with_what_to_do(text: str, says: str) -> None:
    with pytest.raises(Invalid) as refusal:
        ssh_keys.parse(text)
    assert says in refusal.value.message
    assert refusal.value.hint
    assert list(refusal.value.fields) == ["public_key"]


def test_several_lines_and_options_before_the_key_are_refused(ed25519: str) -> None:
    with pytest.raises(Invalid, match="one line"):
        ssh_keys.parse(f"{ed25519.strip()}\n{ed25519}")
    with pytest.raises(Invalid, match="before the key"):
        ssh_keys.parse(f'command="/bin/true",no-pty {ed25519}')


def test_a_body_of_another_type_than_it_says_is_refused(ed25519: str) -> None:
    with pytest.raises(Invalid, match="damaged"):
        ssh_keys.parse(f"ssh-rsa {ed25519.split()[1]}")


def test_an_rsa_key_that_is_too_short_is_refused() -> None:
    key = rsa.generate_private_key(65537, 1024)  # ssh-keygen no longer makes any
    with pytest.raises(Invalid, match="1024 bits"):
        ssh_keys.parse(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


@given(st.text(max_size=200) | st.builds("ssh-ed25519 {}".format, st.text(max_size=80)))
def test_any_text_is_a_key_or_a_refusal(text: str) -> None:
    try:
        ssh_keys.parse(text)
    except Invalid as refusal:
        assert refusal.hint


def test_adding_and_removing_tells_the_workspaces_and_the_trail(people: People, ed25519: str) -> None:
    with heard(signals.ssh_keys_changed) as told:
        key = ssh_keys.add(people.alice, " laptop ", ed25519)
        ssh_keys.remove(people.alice, key.pk)
    assert key.name == "laptop"
    assert told == ["alice", "alice"]
    actions = list(AuditEntry.objects.order_by("id").values_list("action", "data__fingerprint"))
    assert actions == [("ssh_key.add", key.fingerprint), ("ssh_key.remove", key.fingerprint)]


def test_the_same_key_twice_is_a_conflict_that_names_the_first(people: People, ed25519: str) -> None:
    ssh_keys.add(people.alice, "laptop", ed25519)
    with pytest.raises(Conflict, match="laptop"):
        ssh_keys.add(people.alice, "again", ed25519.replace("alice@laptop", "other comment"))
    ssh_keys.add(people.bob, "shared with alice", ed25519)


def test_fifty_keys_are_enough(people: People, ed25519: str) -> None:
    SSHKey.objects.bulk_create(
        SSHKey(user=people.alice.user, name=str(number), fingerprint=str(number)) for number in range(50)
    )
    with pytest.raises(Conflict, match="50"):
        ssh_keys.add(people.alice, "one more", ed25519)


def test_somebody_elses_key_is_not_there(people: People, ed25519: str) -> None:
    key = ssh_keys.add(people.alice, "laptop", ed25519)
    with pytest.raises(NotThere):
        ssh_keys.remove(people.admin, key.pk)
    assert SSHKey.objects.exists()


def test_a_token_bound_to_a_tenant_cannot_open_workspaces_of_the_others(people: People, ed25519: str) -> None:
    token, _secret = tokens.issue(people.alice.user, "script", ["read", "workspaces"], people.demo)
    with pytest.raises(NotAllowed, match="limited to one tenant"):
        ssh_keys.add(Actor(people.alice.user, token), "laptop", ed25519)


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "two\nlines"])
def test_a_key_needs_a_name(people: People, ed25519: str, name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        ssh_keys.add(people.alice, name, ed25519)
    assert list(refusal.value.fields) == ["name"]
