"""A job at a site without internet: its packages and its code come over HTTPS from a mirror with a certificate of the
site's own authority. A trial cluster with real pods, and Berth with the rights of its manifest there."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusters.site import registries
from clusters.site.registries import NAME, SignOn
from devcluster.testing.cluster import running
from devcluster.testing.kube import Kube
from jobs.models import Attempt
from tests.cast import Cast
from tests.own_rights import OwnRights, bind
from tests.shared.cast_fixtures import NODES
from tests.shared.driving_jobs import PASSES, attempts, drive, in_phase, submitted
from workloads.models import Image

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="disks of process pods need root here"),
]

REFERENCE = "registry.example/team/venv:1"
PROCESSES = ("--pods", "process", "--image", f"{REFERENCE}={sys.prefix}")
MIRROR = "https://127.0.0.1:8443"
# The mirror is in the pod, whose loopback nobody else has: a package, a repository, and the signed certificate.
SCRIPT = r"""#!/bin/sh
set -eu
mkdir -p /tmp/site/simple/greeting && cd /tmp/site
printenv MIRROR_PEM >/tmp/mirror.pem
python3 - <<'PY'
import zipfile
info = "greeting-1.0.dist-info"
files = {"greeting.py": "word = 'hello'\n",
         info + "/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         info + "/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n", info + "/RECORD": ""}
name = "greeting-1.0-py3-none-any.whl"
with zipfile.ZipFile("simple/greeting/" + name, "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
open("simple/greeting/index.html", "w").write(f'<a href="{name}">{name}</a>')
PY
git init -q --bare team.git && git -C team.git update-server-info
python3 - <<'PY' &
import http.server, ssl
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/mirror.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PY
for _ in 1 2 3 4 5 6 7 8 9 10; do curl -ks https://127.0.0.1:8443/ >/tmp/listing && break; sleep 0.5; done
echo "as in the image alone" && ! env -u CURL_CA_BUNDLE -u SSL_CERT_FILE curl -sS https://127.0.0.1:8443/ 2>&1
echo curl && curl -fsS -o /dev/null https://127.0.0.1:8443/
echo git && git ls-remote https://127.0.0.1:8443/team.git
echo python && python3 -c "import urllib.request as r; print(r.urlopen('https://127.0.0.1:8443/').status)"
echo pip && python3 -m pip --disable-pip-version-check download --no-deps --no-cache-dir -d /tmp/got greeting
test -s /tmp/got/greeting-1.0-py3-none-any.whl
test "$PIP_INDEX_URL" = https://127.0.0.1:8443/simple
test "$HF_ENDPOINT" = https://mine.example
grep -q "BEGIN CERT" "$NODE_EXTRA_CA_CERTS"
test "$(grep -c "BEGIN CERT" "$REQUESTS_CA_BUNDLE")" -gt "$(grep -c "BEGIN CERT" "$NODE_EXTRA_CA_CERTS")"
"""


@pytest.fixture
def house(cast: Cast, tmp_path: Path) -> Iterator[Cast]:
    for cluster in running(tmp_path, *PROCESSES, nodes=NODES):
        rights = OwnRights(cluster.kubeconfig, tmp_path)
        cast.cluster.kubeconfig_path = str(rights.kubeconfig)
        bind(cast.cluster)
        cast.cluster.save()
        Image.objects.create(slug=PASSES, name=PASSES, reference=REFERENCE)
        yield cast


def signed() -> tuple[str, str]:
    """Return an authority's certificate; and, by it, one for 127.0.0.1 with its key."""
    now, keys = datetime.now(UTC), [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("Site", "Mirror")]

    def builder(index: int) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(issuer_name=names[0], subject_name=names[index])
            .public_key(keys[index].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )

    own = builder(0).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    pem = serialization.Encoding.PEM
    texts = [
        made.sign(keys[0], hashes.SHA256()).public_bytes(pem).decode()
        for made in (own, builder(1).add_extension(address, critical=False))
    ]
    key = keys[1].private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return texts[0], texts[1] + key.decode()


def test_its_programs_trust_the_sites_authority_and_its_first_pod_finds_the_sign_on(
    house: Cast, tmp_path: Path
) -> None:
    authority, mirror = signed()
    house.cluster.trusted_certificates = authority
    house.cluster.pod_environment = (
        f"PIP_INDEX_URL={MIRROR}/simple\nHF_ENDPOINT=https://hf.example\nHTTPS_PROXY=http://192.0.2.1:9"
    )
    house.cluster.registries = registries.sealed([SignOn("registry.example", "robot", "hush")])
    house.cluster.full_clean()
    house.cluster.save()
    own = {"HF_ENDPOINT": "https://mine.example", "https_proxy": "", "no_proxy": "127.0.0.1"}
    job = submitted(house, command=[], script=SCRIPT, env=own, secret_env={"MIRROR_PEM": mirror}, retries=0)
    job = drive(job, in_phase("succeeded", "failed"), 180)
    assert job.phase == "succeeded", list(Attempt.objects.values())

    kube = Kube(tmp_path / "kubeconfig")
    namespace = f"/api/v1/namespaces/{house.demo.namespace}"
    secret = kube.get(f"{namespace}/secrets/{NAME}")
    config = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
    assert config["auths"]["registry.example"]["password"] == "hush"
    [attempt] = attempts(job)
    made = kube.get(f"/apis/batch/v1/namespaces/{house.demo.namespace}/jobs/{attempt.object_name}")
    assert {"name": NAME} in made["spec"]["template"]["spec"]["imagePullSecrets"]
    assert "hush" not in json.dumps(made)
