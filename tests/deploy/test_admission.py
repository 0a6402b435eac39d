"""Tests of deploy/kubernetes/admission.yaml: what Berth makes is let in, what a stolen account could make is not.

`python -m tests.deploy.admission_on_a_cluster KUBECONFIG` tries the same cases on a real API server.
"""

from __future__ import annotations

import re

import pytest
import yaml

from tests.deploy.admission import BERTH, MANIFEST, Request, bodies, policies, refusals
from tests.deploy.admission_cases import LET_IN, REFUSED


def accounts() -> set[str]:
    """Return user names of Berth's accounts in its namespace, with that which leads to other clusters."""
    made = (body for file in MANIFEST.parent.glob("*.yaml") for body in yaml.safe_load_all(file.read_text()))
    names = {
        body["metadata"]["name"]
        for body in made
        if body["kind"] == "ServiceAccount" and body["metadata"]["namespace"] == "berth"
    }
    return {f"system:serviceaccount:berth:{name}" for name in (*names, "berth")}


@pytest.mark.parametrize("case", LET_IN)
def test_what_berth_does_is_let_in(case: str) -> None:
    assert refusals(LET_IN[case]) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_stolen_account_would_do_is_refused(case: str) -> None:
    request, words = REFUSED[case]
    found = refusals(request)
    assert any(words in message for message in found), found
    assert refusals(Request(**{**vars(request), "user": "system:serviceaccount:berth2:x"})) == []


def test_each_policy_is_in_force_for_berths_accounts_alone_and_fails_closed() -> None:
    bound = {
        body["spec"]["policyName"]: body["spec"]["validationActions"]
        for body in bodies()
        if body["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    assert bound == {policy["metadata"]["name"]: ["Deny"] for policy in policies()}
    for policy in policies():
        assert policy["spec"]["failurePolicy"] == "Fail"
        first = policy["spec"]["matchConditions"][0]["expression"]
        assert set(re.findall("'(.+?)'", first)) == accounts()
    assert BERTH in accounts()
