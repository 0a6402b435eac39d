"""Times of the API: UTC, RFC 3339, to the second or (in newer kinds) to the microsecond."""

from datetime import UTC, datetime


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def age_seconds(text: str) -> float:
    return (datetime.now(UTC) - parse(text)).total_seconds()
