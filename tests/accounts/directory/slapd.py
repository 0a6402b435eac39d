"""A real OpenLDAP server on loopback, for tests: the machine's slapd, or the one that `make test-slow` unpacked.

Use:

    with slapd(folder) as server:
        server.person("ada", groups=["vision-team"])
        settings.LDAP = directory_from(server.settings())
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ldap3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.test import Client

from accounts.models import SignInFailure
from devcluster.testing.waiting import until
from tests.accounts.sign_on.visiting import said
from tests.shared.ports import free_port

REPOSITORY = Path(__file__).resolve().parents[3]
UNPACKED = REPOSITORY / ".dev" / "slapd"
BASE = "dc=example,dc=org"
ROOT = f"cn=root,{BASE}"
READER = f"cn=berth,{BASE}"
PASSWORD = "only-for-tests"
GROUPS = "vision-team=demo:member, vision-leads=demo:owner, readers=demo:viewer, berth-admins=admin"
# Like Active Directory, one answer has 1,000 entries at most; more come page by page.
CONFIGURATION = """
{schemas}
modulepath {modules}
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
sizelimit 1000
database mdb
suffix {base}
rootdn {root}
rootpw {password}
directory {folder}/data
dbnosync
maxsize 104857600
index objectClass,uid,entryUUID,member,cn eq
overlay memberof
memberof-group-oc groupOfNames
limits dn.exact="{reader}" size.soft=1000 size.hard=1000 size.pr=500 size.prtotal=unlimited
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{reader}" read by anonymous auth by * none
"""


def find_slapd() -> Path | None:
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin:{UNPACKED / 'usr/sbin'}"
    found = shutil.which("slapd", path=path)
    return Path(found) if found else None


class Slapd:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = self.tls_port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def settings(self, groups: str = GROUPS, **more: str) -> dict[str, str]:
        """Berth's environment for this directory."""
        return {
            "BERTH_LDAP_URL": f"ldaps://127.0.0.1:{self.tls_port}",
            "BERTH_LDAP_CA_FILE": str(self.folder / "ca.pem"),
            "BERTH_LDAP_NAME": "Example University",
            "BERTH_LDAP_BIND_DN": READER,
            "BERTH_LDAP_BIND_PASSWORD": PASSWORD,
            "BERTH_LDAP_PEOPLE_BASE": f"ou=people,{BASE}",
            "BERTH_LDAP_PEOPLE_FILTER": "(objectClass=inetOrgPerson)",
            "BERTH_LDAP_GROUP_BASE": f"ou=groups,{BASE}",
            "BERTH_LDAP_GROUPS": groups,
            **more,
        }

    def start(self) -> None:
        found = find_slapd()
        if found is None:
            pytest.skip("slapd is not installed here (apt install slapd)")
        inside = found.is_relative_to(UNPACKED)
        root = UNPACKED if inside else Path("/")
        (self.folder / "data").mkdir(exist_ok=True)
        schemas = (
            root / "etc/ldap/schema" / f"{name}.schema" for name in ("core", "cosine", "nis", "inetorgperson")
        )
        text = CONFIGURATION.format(
            schemas="\n".join(f"include {schema}" for schema in schemas),
            modules=root / "usr/lib/ldap",
            folder=self.folder,
            base=BASE,
            root=ROOT,
            reader=READER,
            password=PASSWORD,
        )
        (self.folder / "slapd.conf").write_text(text)
        libraries = ":".join(map(str, UNPACKED.glob("usr/lib/*-linux-gnu"))) if inside else ""
        until(lambda: self._began(found, libraries))

    def _began(self, program: Path, libraries: str) -> bool:
        """Start it on free ports. Return False if another took one of them first."""
        self.port, self.tls_port = free_port(), free_port()
        addresses = f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}"
        with (self.folder / "slapd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(program), "-d", "none", "-f", str(self.folder / "slapd.conf"), "-h", addresses],
                env={**os.environ, "LD_LIBRARY_PATH": libraries},
                stdout=log,
                stderr=log,
            )
        until(lambda: self._has_ended() or self._answers())
        assert not self._has_ended() or b"bind" in (text := (self.folder / "slapd.log").read_bytes()), text
        return not self._has_ended()

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def root(self) -> ldap3.Connection:
        server = ldap3.Server(f"ldap://127.0.0.1:{self.port}", get_info=ldap3.NONE)
        return ldap3.Connection(server, ROOT, PASSWORD, auto_bind=True, check_names=False)

    def add(self, dn: str, classes: str, attributes: dict[str, Any]) -> None:
        with self.root() as connection:
            _add(connection, dn, classes, attributes)

    def person(
        self, name: str, password: str = "secret", groups: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Add a person, and put them into groups. Return the entry's name."""
        with self.root() as connection:
            return _person(connection, name, password, groups, **attributes)

    def people(self, names: Sequence[str], **attributes: Any) -> None:
        with self.root() as connection:
            for name in names:
                _person(connection, name, "secret", (), **attributes)

    def change(self, name: str, **attributes: Any) -> None:
        changes = {
            key: [(ldap3.MODIFY_REPLACE, [value] if value else [])] for key, value in attributes.items()
        }
        with self.root() as connection:
            assert connection.modify(dn_of(name), changes), connection.result

    def leave_group(self, name: str, group: str) -> None:
        with self.root() as connection:
            dn = f"cn={group},ou=groups,{BASE}"
            assert connection.modify(dn, {"member": [(ldap3.MODIFY_DELETE, [dn_of(name)])]}), (
                connection.result
            )

    def rename(self, name: str, other: str) -> None:
        with self.root() as connection:
            assert connection.modify_dn(dn_of(name), f"uid={other}"), connection.result

    def move(self, name: str, unit: str, was: str = "people") -> None:
        with self.root() as connection:
            dn = f"uid={name},ou={was},{BASE}"
            moved = connection.modify_dn(dn, f"uid={name}", new_superior=f"ou={unit},{BASE}")
            assert moved, connection.result

    def remove(self, *names: str) -> None:
        with self.root() as connection:
            for name in names:
                assert connection.delete(dn_of(name)), connection.result

    def _answers(self) -> bool:
        try:
            self.root().unbind()
        except ldap3.core.exceptions.LDAPException:
            return False
        return True


def enter(name: str, password: str = "secret") -> tuple[int, str]:
    """Sign in on the page. Return the status, with the name of who is in, or with the refusal."""
    SignInFailure.objects.all().delete()
    client = Client()
    answer = client.post("/sign-in/", {"username": name, "password": password, "next": "/profile/"})
    if answer.status_code == 302:
        return 302, client.get("/api/v1/me/").json()["username"]
    return answer.status_code, said(answer)


def dn_of(name: str) -> str:
    return f"uid={name},ou=people,{BASE}"


@contextmanager
def slapd(folder: Path) -> Iterator[Slapd]:
    """Run a directory with its own CA, and groups that nobody of the people is in."""
    certificates(folder)
    server = Slapd(folder)
    server.start()
    try:
        with server.root() as connection:
            _add(connection, BASE, "dcObject organization", {"dc": "example", "o": "Example"})
            _add(connection, READER, "organizationalRole simpleSecurityObject", {"userPassword": PASSWORD})
            for unit in ("people", "groups", "elsewhere"):
                _add(connection, f"ou={unit},{BASE}", "organizationalUnit", {})
            for group in ("vision-team", "vision-leads", "readers", "berth-admins"):
                _add(connection, f"cn={group},ou=groups,{BASE}", "groupOfNames", {"member": READER})
        yield server
    finally:
        server.stop()


def certificates(folder: Path) -> None:
    """Write ca.pem, and server.pem with server.key for 127.0.0.1; stranger.pem is another CA."""
    ca_key, ca = _certificate("Test CA", None, None)
    key, server = _certificate("127.0.0.1", ca, ca_key)
    _other_key, stranger = _certificate("Another CA", None, None)
    for name, certificate in (("ca", ca), ("server", server), ("stranger", stranger)):
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "server.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _certificate(name: str, issuer: Any, issuer_key: Any) -> tuple[Any, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        address = x509.IPAddress(ipaddress.ip_address(name))
        builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return key, builder.sign(issuer_key or key, hashes.SHA256())


def _person(connection: Any, name: str, password: str, groups: Sequence[str], **attributes: Any) -> str:
    values = {
        "cn": name.title(),
        "sn": "Lovelace",
        "givenName": name.title(),
        "mail": f"{name}@example.org",
        "userPassword": password,
        **attributes,
    }
    _add(connection, dn_of(name), "inetOrgPerson", values)
    for group in groups:
        change = {"member": [(ldap3.MODIFY_ADD, [dn_of(name)])]}
        assert connection.modify(f"cn={group},ou=groups,{BASE}", change), connection.result
    return dn_of(name)


def _add(connection: Any, dn: str, classes: str, attributes: dict[str, Any]) -> None:
    assert connection.add(dn, classes.split(), attributes), connection.result
