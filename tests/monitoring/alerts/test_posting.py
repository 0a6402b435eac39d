"""One request to an entered address: what is refused, and what is bounded."""

from __future__ import annotations

import threading
import time
from ipaddress import ip_address, ip_network

import pytest

from monitoring.alerts import posting
from monitoring.alerts.posting import NotPosted, Request, is_inside, post
from tests.shared.servers.receiver import Receiver

INSIDE = [
    "127.0.0.1",
    "::1",
    "169.254.169.254",
    "fe80::1",
    "0.0.0.0",
    "224.0.0.1",
    "::ffff:127.0.0.1",
    "10.43.0.1",
]


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_of_our_own_are_inside(address: str) -> None:
    assert is_inside(ip_address(address), [ip_network("10.43.0.0/16")])


@pytest.mark.parametrize("address", ["192.0.2.1", "10.1.2.3", "2001:4860:4860::8888"])
def test_others_are_not(address: str) -> None:
    assert not is_inside(ip_address(address), [ip_network("10.43.0.0/16")])


def test_a_request_arrives_as_it_is(hook: Receiver) -> None:
    answer = post(Request(hook.url, b"{}", {"x-a": "b"}), refused=None)
    (got,) = hook.got
    assert answer.status == 200 and got.body == b"{}" and got.headers["x-a"] == "b"
    assert got.path == "/hook?token=deep-secret"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_tenants_route_does_not_reach_this_machine(hook: Receiver, host: str) -> None:
    with pytest.raises(NotPosted):
        post(Request(f"http://{host}:{hook.port}/", b"", {}), refused=[])
    assert not hook.got


def test_redirects_are_not_followed(hook: Receiver) -> None:
    hook.status, hook.location = 302, f"http://127.0.0.1:{hook.port}/elsewhere"
    assert post(Request(hook.url, b"", {}), refused=None).status == 302 and len(hook.got) == 1


def test_a_large_answer_is_cut_off(hook: Receiver) -> None:
    hook.answer = b"x" * 1_000_000
    assert len(post(Request(hook.url, b"", {}), refused=None).body) == posting.LARGEST_ANSWER


def test_a_receiver_that_hangs_ends_after_a_while(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "ALL_SECONDS", 0.5)
    hook.holds = threading.Event()
    began = time.monotonic()
    with pytest.raises(NotPosted):
        post(Request(hook.url, b"", {}), refused=None)
    assert time.monotonic() - began < 10


def test_an_error_does_not_quote_the_address() -> None:
    for url in (
        "http://127.0.0.1:1/deep-secret",
        "http://nowhere.invalid/deep-secret",
        "http://[bad/deep-secret",
    ):
        with pytest.raises(NotPosted) as caught:
            post(Request(url, b"", {}), refused=None)
        assert "deep-secret" not in str(caught.value)
