"""Texts of kubeconfigs: the parts that a context names, and what of a pasted one is kept, encrypted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.utils.translation import gettext as _

from accounts.credentials.secrets import encrypt
from accounts.errors import Invalid

LONGEST = 256 * 1024
# Keys that name a program to run, and keys that name a file of the machine where the kubeconfig was made.
PROGRAMS = ("exec", "auth-provider")
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
# What a person signs in to the cluster with.
CREDENTIALS = ("token", "client-certificate-data", "username")
FLATTEN = "kubectl config view --raw --flatten --minify"


def chosen(kubeconfig: dict[str, Any], context: str, part: str) -> dict[str, Any]:
    """Return the part, a user or a cluster, that the context names."""
    names = (
        named(kubeconfig, "contexts", context or kubeconfig.get("current-context", "")).get("context") or {}
    )
    return named(kubeconfig, f"{part}s", names.get(part, "")).get(part) or {}


def named(kubeconfig: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    return next((entry for entry in kubeconfig.get(section) or [] if entry.get("name") == name), {})


def sealed(text: str, context: str = "") -> str:
    """Return what is kept of a pasted kubeconfig, encrypted. Raise Invalid with what is wrong."""
    return encrypt(kept(text, context))


def kept(text: str, context: str = "") -> str:
    """Return the parts of a pasted kubeconfig that one context needs, as YAML. Raise Invalid with what is wrong."""
    kubeconfig = _parsed(text)
    names = [entry.get("name") for entry in _entries(kubeconfig, "contexts")]
    contexts = [name for name in names if isinstance(name, str)]
    name = (
        context or str(kubeconfig.get("current-context") or "") or (contexts[0] if len(contexts) == 1 else "")
    )
    if name not in contexts:
        raise _invalid(
            "context",
            _("The kubeconfig has no context “%(name)s”.") % {"name": name or "–"},
            _("Use one of these: %(names)s.") % {"names": _(", ").join(contexts) or "–"},
        )
    try:
        cluster, user = (chosen(kubeconfig, name, part) for part in ("cluster", "user"))
        faults = list(_faults(cluster, user))
    except (AttributeError, TypeError, ValueError):
        raise _unreadable() from None
    if faults:
        raise faults[0]
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
        }
    )


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > LONGEST:
        raise _invalid("kubeconfig", _("It is longer than 256 KiB."), _hint_of_command())
    try:
        kubeconfig = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _unreadable() from None
    if not isinstance(kubeconfig, dict) or "clusters" not in kubeconfig:
        raise _unreadable()
    return kubeconfig


def _entries(kubeconfig: dict[str, Any], section: str) -> list[dict[str, Any]]:
    entries = kubeconfig.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _unreadable()
    return entries


def _faults(cluster: dict[str, Any], user: dict[str, Any]) -> Iterator[Invalid]:
    server = urlsplit(str(cluster.get("server") or ""))
    if server.scheme not in ("http", "https") or not server.hostname:
        yield _invalid(
            "kubeconfig", _("It does not name the cluster's address (server: https://…)."), _hint_of_command()
        )
    if program := next((key for key in PROGRAMS if user.get(key)), ""):
        yield _invalid(
            "kubeconfig",
            _("It gets its credentials from a program (%(key)s), which Berth does not run.")
            % {"key": program},
            _("Make a ServiceAccount for Berth, and use its token: `kubectl create token`."),
        )
    if file := next((key for key in FILES for part in (cluster, user) if part.get(key)), ""):
        yield _invalid(
            "kubeconfig", _("It names a file of your machine (%(key)s).") % {"key": file}, _hint_of_command()
        )
    if not any(user.get(key) for key in CREDENTIALS) and server.scheme == "https":
        yield _invalid(
            "kubeconfig", _("It has neither a token nor a client certificate."), _hint_of_command()
        )


def _hint_of_command() -> str:
    return _("Paste what this prints: %(command)s") % {"command": FLATTEN}


def _unreadable() -> Invalid:
    """Return a refusal that repeats nothing of the text: it may be a secret."""
    return _invalid("kubeconfig", _("This is not a kubeconfig."), _hint_of_command())


def _invalid(field: str, text: str, hint: str) -> Invalid:
    return Invalid("invalid", text, hint, fields={field: [f"{text} {hint}"]})
