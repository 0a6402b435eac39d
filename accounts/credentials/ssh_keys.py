"""SSH public keys: what is accepted, and how it is stored (type and body only; options and comments are dropped)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor, not_there
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.models import Scope, SSHKey, User
from accounts.text import is_visible
from accounts.trail import audit

MOST_PER_PERSON = 50
LONGEST_NAME = 80
LONGEST_TEXT = 16_384
RSA_BITS = range(2048, 16_385)
ACCEPTED_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-rsa",
)


@dataclass(frozen=True)
class PublicKey:
    line: str
    fingerprint: str


def add(actor: Actor, name: str, public_key: str) -> SSHKey:
    """Add a key that logs in to all of the person's workspaces."""
    actor.require(Scope.WORKSPACES)
    actor.require_whole_person()
    name = _checked_name(name)
    key = parse(public_key)
    with transaction.atomic():
        locked(User.objects.all()).get(pk=actor.user.pk)  # one at a time: the checks below must hold
        known = SSHKey.objects.filter(user=actor.user)
        same = known.filter(fingerprint=key.fingerprint).first()
        if same is not None:
            raise Conflict(
                "ssh_key_known",
                _("You have this key already, as “%(name)s”.") % {"name": same.name},
                _("Nothing to do: it works in all your workspaces."),
            )
        if known.count() >= MOST_PER_PERSON:
            raise Conflict(
                "too_many_ssh_keys",
                _("You have %(count)d SSH keys already.") % {"count": MOST_PER_PERSON},
                _("Remove those that you no longer use."),
            )
        row = SSHKey.objects.create(
            user=actor.user, name=name, public_key=key.line, fingerprint=key.fingerprint
        )
        audit.record(actor, "ssh_key.add", target=row, data={"name": name, "fingerprint": key.fingerprint})
        signals.ssh_keys_changed.send(sender=SSHKey, users={actor.user})
    return row


def comment_of(public_key: str) -> str:
    """Return the key's comment, such as `ada@laptop`, to use as its name; empty if it is not suitable."""
    comment = " ".join(public_key.split()[2:])
    return comment if len(comment) <= LONGEST_NAME and is_visible(comment) else ""


def get(actor: Actor, key_id: UUID) -> SSHKey:
    """Return a key of the person, or raise NotThere."""
    row = SSHKey.objects.filter(user=actor.user, id=key_id).first()
    if row is None:
        raise not_there()
    return row


def remove(actor: Actor, key_id: UUID) -> None:
    actor.require(Scope.WORKSPACES)
    actor.require_whole_person()
    with transaction.atomic():
        row = locked(SSHKey.objects.filter(user=actor.user, id=key_id)).first()
        if row is None:
            raise not_there()
        audit.record(
            actor, "ssh_key.remove", target=row, data={"name": row.name, "fingerprint": row.fingerprint}
        )
        row.delete()
        signals.ssh_keys_changed.send(sender=SSHKey, users={actor.user})


def parse(text: str) -> PublicKey:
    """Parse one line of `~/.ssh/id_….pub`. For anything else raise Invalid, which says what to do."""
    line = text.strip()
    if "PRIVATE KEY" in line:
        raise _refused(
            _("This is a private key. Nobody but you should ever see it."),
            _(
                "Paste the file that ends in .pub. If you sent this key to others too, make a new one with ssh-keygen."
            ),
        )
    if line.startswith(("---- BEGIN SSH2", "-----BEGIN")):
        raise _refused(
            _("This is a public key in another format."),
            _("Convert it with “ssh-keygen -i -f FILE”, or paste the one line of ~/.ssh/id_ed25519.pub."),
        )
    if len(line) > LONGEST_TEXT or any(character < " " and character != "\t" for character in line):
        raise _refused(_("A public key is one line."), _("Paste one key at a time, without line breaks."))
    words = line.split()
    _check_type(words)
    return _decode(words[0], words[1])


def _check_type(words: list[str]) -> None:
    kind = words[0] if words else ""
    if kind == "ssh-dss":
        raise _refused(_("DSA keys are no longer safe."), _make_one())
    if "-cert-v0" in kind:
        raise _refused(
            _("This is a certificate, not a key."), _("Paste the .pub file without “-cert” in its name.")
        )
    if kind not in ACCEPTED_TYPES:
        if any(accepted in words[1:] for accepted in ACCEPTED_TYPES):
            raise _refused(
                _("There is something before the key."),
                _("Remove the options; start with %(kinds)s….")
                % {"kinds": "ssh-ed25519, ecdsa-sha2-, ssh-rsa"},
            )
        raise _refused(_("This is not an OpenSSH public key."), _make_one())
    if len(words) < 2:
        raise _refused(_("The key's body is missing."), _("Paste the whole line of the .pub file."))


def _decode(kind: str, body: str) -> PublicKey:
    line = f"{kind} {body}"
    try:
        key = load_ssh_public_key(line.encode())
        blob = base64.b64decode(body, validate=True)
    except (ValueError, UnsupportedAlgorithm):
        raise _refused(
            _("The key's body is damaged."),
            _("Copy the whole line of the .pub file again, without line breaks."),
        ) from None
    if isinstance(key, RSAPublicKey) and key.key_size not in RSA_BITS:
        raise _refused(
            _("This RSA key has %(bits)d bits; it needs 2048 or more.") % {"bits": key.key_size}, _make_one()
        )
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return PublicKey(line, f"SHA256:{digest}")


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not is_visible(name):
        text = _("Give it a name of 1 to 80 characters, on one line.")
        raise Invalid("invalid", text, _("Change it and try again."), fields={"name": [text]})
    return name


def _make_one() -> str:
    return _("Make one with “ssh-keygen -t ed25519” and paste the line of ~/.ssh/id_ed25519.pub.")


def _refused(message: str, hint: str) -> Invalid:
    return Invalid("ssh_key_refused", message, hint, fields={"public_key": [f"{message} {hint}"]})
