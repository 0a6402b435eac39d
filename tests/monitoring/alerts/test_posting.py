"""One request to an entered address: what is refused, and what is bounded."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

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


def test_a_receiver_that_drips_over_tls_ends_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "ALL_SECONDS", 0.5)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with dripping(tmp_path) as (port, seconds_heard):
        with pytest.raises(NotPosted):
            post(Request(f"https://127.0.0.1:{port}/", b"", {}), refused=None)
        assert seconds_heard() < DRIPS_SECONDS


def test_a_name_that_is_not_looked_up_in_time_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "ALL_SECONDS", 0.1)
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [answered.wait(60)][:0])
    with pytest.raises(NotPosted):
        post(Request("https://x.test/", b"", {}), refused=None)
    answered.set()


def test_an_error_does_not_quote_the_address() -> None:
    for url in (
        "http://127.0.0.1:1/deep-secret",
        "http://nowhere.invalid/deep-secret",
        "http://[bad/deep-secret",
    ):
        with pytest.raises(NotPosted) as caught:
            post(Request(url, b"", {}), refused=None)
        assert "deep-secret" not in str(caught.value)


DRIPS_SECONDS = 20.0


@contextmanager
def dripping(folder: Path) -> Iterator[tuple[int, Callable[[], float]]]:
    """Serve one client over TLS: a byte after another, for so long as the client listens, or 20 seconds."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(folder))
    took: list[float] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        began, gone = time.monotonic(), threading.Event()
        with suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as client:
            while time.monotonic() - began < DRIPS_SECONDS:
                client.send(b"H")
                gone.wait(0.02)
        took.append(time.monotonic() - began)

    thread = threading.Thread(target=serve)
    thread.start()

    def seconds_heard() -> float:
        thread.join()
        return took[0]

    with listener:
        yield listener.getsockname()[1], seconds_heard
        thread.join()


def certificate(folder: Path) -> Path:
    """Write a certificate of 127.0.0.1 that signs itself, with its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(now - timedelta(days=1))
    built = built.not_valid_after(now + timedelta(days=1))
    built = built.add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    written = built.sign(key, hashes.SHA256()).public_bytes(encoding)
    written += key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    path = folder / "cert.pem"
    path.write_bytes(written)
    return path
