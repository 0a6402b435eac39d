"""Validation of Jobs beyond their pods: counts, and policies that must fit together."""

from collections.abc import Iterator

from devcluster.errors import Cause, invalid_value, not_supported, required
from devcluster.resources import Obj

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"]
INDEXED_ONLY = "requires indexed completion mode"


def check(job: Obj) -> Iterator[Cause]:
    spec = job["spec"]
    for name in _COUNTS:
        if spec.get(name, 0) < 0:
            yield invalid_value(f"spec.{name}", spec[name], "must be greater than or equal to 0")
    if spec["completionMode"] not in ("NonIndexed", "Indexed"):
        yield not_supported("spec.completionMode", spec["completionMode"], ["NonIndexed", "Indexed"])
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec["completionMode"] == "NonIndexed":
        yield from _indexed_only(spec)
    elif "completions" not in spec:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from _failure_policy(spec)
    replacements = ["Failed"] if "podFailurePolicy" in spec else ["Failed", "TerminatingOrFailed"]
    if spec["podReplacementPolicy"] not in replacements:
        yield not_supported("spec.podReplacementPolicy", spec["podReplacementPolicy"], replacements)


def _indexed_only(spec: Obj) -> Iterator[Cause]:
    for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if name in spec:
            yield invalid_value(f"spec.{name}", spec[name], INDEXED_ONLY)


def _failure_policy(spec: Obj) -> Iterator[Cause]:
    if "podFailurePolicy" not in spec:
        return
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid_value("spec.template.spec.restartPolicy", policy, why)
    for n, rule in enumerate(spec["podFailurePolicy"].get("rules") or []):
        at = f"spec.podFailurePolicy.rules[{n}]"
        if rule.get("action") not in _ACTIONS:
            yield not_supported(f"{at}.action", rule.get("action"), _ACTIONS)
        elif rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in spec:
            why = "requires the backoffLimitPerIndex to be set"
            yield invalid_value(f"{at}.action", rule["action"], why)
        codes = rule.get("onExitCodes") or {}
        for m, code in enumerate(codes.get("values") or []):
            if code == 0 and codes.get("operator") == "In":
                why = "must not be 0 for the In operator"
                yield invalid_value(f"{at}.onExitCodes.values[{m}]", code, why)
