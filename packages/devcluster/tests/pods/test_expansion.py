"""References in a container's environment and command, replaced as Kubernetes does it."""

import pytest

from devcluster.kubelet.containers.config import expand


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(NAME)-1", "value-1"),
        ("$(OTHER)", "$(OTHER)"),
        ("$$(NAME)", "$(NAME)"),
        ("$$$(NAME)", "$value"),
        ("pa$$word", "pa$word"),
        ("$NAME 5$", "$NAME 5$"),
        ("$(NAME", "$(NAME"),
    ],
)
def test_references_are_replaced_and_double_dollars_made_one(text: str, expanded: str) -> None:
    assert expand(text, {"NAME": "value"}) == expanded
