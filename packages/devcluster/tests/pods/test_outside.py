"""Names of a machine's proxies and package index for pods, tested without any machine."""

from pathlib import Path

from devcluster.kubelet.network.outside import seen, through

GATEWAY, NETWORK = "10.244.0.1", "10.244.0.0/16"


def named(environ: dict[str, str]) -> dict[str, str]:
    return dict(through(GATEWAY, NETWORK, seen(environ, Path("/nowhere"))).environment)


def test_a_machine_without_settings_gives_none() -> None:
    assert named({"HOME": "/root", "SECRET": "s"}) == {}


def test_a_proxy_elsewhere_is_named_as_it_is_and_not_asked_for_what_is_near() -> None:
    found = named({"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "corp.example"})
    assert found["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert found["NO_PROXY"] == f"corp.example,localhost,127.0.0.1,{NETWORK}"
    assert "PIP_TRUSTED_HOST" not in found


def test_what_listens_on_loopback_is_named_by_the_gateway() -> None:
    own = seen({"http_proxy": "http://me:pw@127.0.0.1:3128", "PIP_INDEX_URL": "http://localhost:3141/simple"})
    found = through(GATEWAY, NETWORK, own)
    assert found.environment["http_proxy"] == f"http://me:pw@{GATEWAY}:3128"
    assert found.environment["PIP_INDEX_URL"] == f"http://{GATEWAY}:3141/simple"
    assert found.environment["PIP_TRUSTED_HOST"] == GATEWAY
    assert found.ports == {3128, 3141}


def test_pips_own_file_is_given_and_translated(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = http://[::1]:8081/simple\ntimeout = 5\n")
    found = through(GATEWAY, NETWORK, seen({}, tmp_path / "pip.conf"))
    assert (
        found.files["/etc/pip.conf"] == f"[global]\nindex-url = http://{GATEWAY}:8081/simple\ntimeout = 5\n"
    )
    assert found.ports == {8081}
