"""Manifests per way of sharing: equal, to the letter, to those that were read and approved."""

from __future__ import annotations

import pytest

from quotas.sharing import STRATEGIES
from tests.workspaces.cluster.shared_manifests import CASES, FOLDER, manifest, path


@pytest.mark.parametrize("name", CASES)
def test_the_manifest_is_the_one_that_was_approved(name: str) -> None:
    assert manifest(name) == path(name).read_text()


def test_every_way_of_sharing_has_one_and_no_file_is_left_over() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} == set(CASES)
    assert {str(way) for way in STRATEGIES} <= {name.removesuffix("-mixed") for name in CASES}
