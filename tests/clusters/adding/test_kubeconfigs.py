"""Tests of what is kept of a pasted kubeconfig, and of refusals that repeat nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from accounts.errors import Invalid
from clusters.adding.kubeconfigs import kept

USER: dict[str, Any] = {"token": "very-secret"}
SERVER: dict[str, Any] = {"server": "https://10.0.0.1:6443"}


def kubeconfig(
    user: dict[str, Any] = USER, cluster: dict[str, Any] = SERVER, current: str = "mine", **changes: Any
) -> str:
    contexts = [{"name": name, "context": {"cluster": "c", "user": name}} for name in ("mine", "other")]
    users = [{"name": "mine", "user": user}, {"name": "other", "user": {"token": "of-another"}}]
    clusters = [{"name": "c", "cluster": cluster}]
    parts = {"clusters": clusters, "users": users, "contexts": contexts, "current-context": current}
    return yaml.safe_dump(parts | changes)


def test_only_the_chosen_context_is_kept() -> None:
    assert yaml.safe_load(kept(kubeconfig()))["users"][0]["user"] == USER
    assert "very-secret" not in kept(kubeconfig(), "other")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("a: [", "kubeconfig"),
        ("very-secret", "kubeconfig"),
        (kubeconfig(clusters=7), "kubeconfig"),
        (kubeconfig(contexts="very-secret"), "kubeconfig"),
        (kubeconfig(users=[7]), "kubeconfig"),
        (kubeconfig(current=""), "context"),
        (kubeconfig(current="gone"), "context"),
        (kubeconfig({"exec": {"command": "very-secret"}}), "kubeconfig"),
        (kubeconfig({"client-key": "/very-secret", "token": "x"}), "kubeconfig"),
        (kubeconfig({"tokenFile": "/etc/passwd"}), "kubeconfig"),
        (kubeconfig({}), "kubeconfig"),
        (kubeconfig(cluster={"server": "file:///etc/very-secret"}), "kubeconfig"),
        (kubeconfig(cluster=SERVER | {"certificate-authority": "/very-secret"}), "kubeconfig"),
    ],
)
def test_what_cannot_be_used_is_refused_without_quoting_it(text: str, field: str) -> None:
    with pytest.raises(Invalid) as raised:
        kept(text)
    assert list(raised.value.fields) == [field]
    assert "very-secret" not in str(raised.value.fields) + raised.value.message + raised.value.hint


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)


@given(st.fixed_dictionaries(dict.fromkeys(("clusters", "users", "contexts", "current-context"), VALUES)))
def test_any_other_text_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        kept(yaml.safe_dump(parts))
