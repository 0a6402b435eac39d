"""Entries of the catalogue that could never start: refused where an admin writes them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from clusters.references import valid_reference
from quotas.models import Flavor
from tests.cast import Cast
from workloads.models import Image

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "reference",
    [
        "jupyter", "berth/workspace:1", "devcluster.local/simulated-vectoradd:passes", "localhost:5000/a/b:v1.2-x_y",
        f"quay.example/a/b@{DIGEST}", f"quay.example/a/b:v1@{DIGEST}", "[fd00::1]:5000/a", "a/b__c/d-e.f",
    ],
)  # fmt: skip
def test_a_reference_that_a_runtime_takes_is_taken(reference: str) -> None:
    valid_reference(reference)


@pytest.mark.parametrize(
    "reference",
    [
        "", "not a ref!!", "Upper/case:1", "a:b:c", "a@sha256:12", "/a", "a/", "a//b", " a", "a\n", "a:-x",
        "https://host/a", "a\u202e", "-a.example/b",
    ],
    ids=ascii,
)  # fmt: skip
def test_a_reference_that_no_runtime_takes_is_refused(reference: str) -> None:
    with pytest.raises(ValidationError):
        valid_reference(reference)


@pytest.mark.django_db
def test_the_admins_page_of_images_refuses_it(cast: Cast) -> None:
    image = Image.objects.get(slug="jupyter")
    image.reference = "not a ref!!"
    with pytest.raises(ValidationError) as refused:
        image.full_clean()
    assert set(refused.value.message_dict) == {"reference"}


@pytest.mark.django_db
@pytest.mark.parametrize(("field", "value"), [("memory_mib", 0), ("memory_mib", 127), ("cpu_millicores", 0)])
def test_a_size_that_starts_nothing_is_refused(cast: Cast, field: str, value: Any) -> None:
    flavor = Flavor.objects.get(slug="a100-1")
    setattr(flavor, field, value)
    with pytest.raises(ValidationError) as refused:
        flavor.full_clean()
    assert set(refused.value.message_dict) == {field}
