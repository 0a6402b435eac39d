"""Problems of Berth's own parts, switched on in the trial, by the code of the alert that each has to raise."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from functools import partial

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.monitoring.switches import Switches
from tests.e2e.stack import Client, until
from tests.shared.servers.smtp import MailServer

OF_RUNS = ("alike_node", "alike_image")
OF_MAIL = ("mail_given_up", "mail_stuck")
OF_CREDENTIALS = ("credential_ends", "agent_token_unused")
WITHOUT_WORKER = ("part_silent", "tasks_wait", "queue_stands_still")
SILENT, AWAY = "watch_silent", "cluster_unreachable"
OWN = {*OF_RUNS, *OF_MAIL, *OF_CREDENTIALS, *WITHOUT_WORKER, SILENT, AWAY}
RUNS = 3
OLD_MAIL = "UPDATE accounts_notice SET at = at - interval '11 minutes' WHERE mail = 'waiting'"
OLD_TOKENS = (
    "UPDATE monitoring_agenttoken SET created_at = created_at - interval '31 days' WHERE name = 'spare'"
)


class OwnParts:
    def __init__(self, switches: Switches, carol: Client, mail: MailServer) -> None:
        self.switches, self.stack, self.carol, self.mail = switches, switches.stack, carol, mail

    def all_but_the_cluster(self) -> None:
        """Switch all on, the worker's end last: from then on a watcher alone tells of all."""
        self.mail.replies |= {
            "alice@berth.example": "550 5.1.1 no such user",
            "carol@berth.example": "451 4.2.1 busy",
        }
        self.silent_watch()
        self.interrupted_runs()
        self.mails()
        self.credentials()
        self.stack.supervise("stop", "worker")
        self.switches.launch("waits")

    def silent_watch(self) -> None:
        """Take Berth's right to read one kind away."""
        match = {"resource": "configmaps"}
        for verb in ("list", "watch"):
            self.stack.fault(status=403, match={**match, "verb": verb})
        self.stack.fault(drop_watches=True, match=match)

    def interrupted_runs(self) -> None:
        """Let a node lose its power, with several runs on it."""
        launched = [self.switches.launch(f"run-{number}") for number in range(RUNS)]
        launched.append(self.switches.launch("carols", self.carol, "second"))
        query = "SELECT 1 FROM workspaces_workspace WHERE id::text = ANY(%s) AND phase = 'ready'"
        until("all are ready", lambda: len(self.stack.rows(query, launched)) == len(launched), 120)
        number = self.stack.fault(node="cpu", state="off")
        until(
            "the node is lost",
            partial(self.stack.rows, "SELECT 1 FROM clusters_node WHERE name = 'cpu' AND NOT ready"),
            60,
        )
        self.stack.end_faults(number)
        records = "SELECT 1 FROM monitoring_postmortem WHERE holder_id::text = ANY(%s) AND due_at IS NULL"
        until(
            "their records are complete",
            lambda: len(self.stack.rows(records, launched)) == len(launched),
            240,
        )

    def mails(self) -> None:
        waits = "SELECT 1 FROM accounts_notice WHERE mail = 'waiting' AND mail_error <> ''"
        until("a mail waits", partial(self.stack.rows, waits), 120)
        with self.stack.database(read_only=False) as database:
            database.execute(OLD_MAIL)

    def credentials(self) -> None:
        """Let Berth trust one more authority in the cluster, which ends in ten days, and forget an agent's token."""
        path = self.stack.folder / "kubeconfig"
        kubeconfig = yaml.safe_load(path.read_text())
        cluster = kubeconfig["clusters"][0]["cluster"]
        both = base64.b64decode(cluster["certificate-authority-data"]) + authority(timedelta(days=10))
        cluster["certificate-authority-data"] = base64.b64encode(both).decode()
        path.write_text(yaml.safe_dump(kubeconfig))
        self.stack.manage("issue_agent_token", *self.slug(), "--name", "spare")
        with self.stack.database(read_only=False) as database:
            database.execute(OLD_TOKENS)

    def slug(self) -> list[str]:
        return [row["slug"] for row in self.stack.rows("SELECT slug FROM clusters_cluster")]

    def repair_all_but_the_cluster(self) -> None:
        self.mail.replies.clear()
        self.stack.end_faults()
        self.stack.supervise("start", "worker")


def authority(lasts: timedelta) -> bytes:
    """Return the certificate of an authority that signs nothing."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old")]),
    )
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + lasts
    )
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
