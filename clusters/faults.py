"""Faults of the connection to a cluster, in words: what is wrong, and what an admin does about it.

They are read from the error's text, since the libraries beneath tell TLS, names and sockets apart by nothing else.
A kubeconfig's text is never repeated, for it may quote a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from clusters.errors import ClusterError, ClusterMisconfigured, ClusterRefused
from clusters.models import Cluster


@dataclass(frozen=True)
class Fault:
    """Pattern of an error's text, with the message and the hint to show."""

    sign: str
    message: str | Promise
    hint: str | Promise


_FILE = (
    Fault(
        r"invalid kube-config file\. no configuration found|no such file|errno 2\b",
        _("The kubeconfig file %(path)s does not exist."),
        _("Put it on every machine that runs Berth, at this path, or correct the path."),
    ),
    Fault(
        r"permission denied",
        _("Berth cannot read the kubeconfig file %(path)s."),
        _("Make it readable for the account that Berth runs as, and for nobody else."),
    ),
    Fault(
        r"runs a program on this server|which runs a",
        _("The kubeconfig gets its credentials from a program that would run on this server."),
        _("Use a token or a client certificate, or set BERTH_ALLOW_EXEC_PLUGINS=1 if you trust that file."),
    ),
    Fault(
        r"service (host|token|certificate)|in.cluster|not running in",
        _("Berth does not run in a cluster, or has no service account there."),
        _("Give the pods of Berth the service account of deploy/kubernetes, or name a kubeconfig file."),
    ),
    Fault(
        r"encrypted with another key",
        _("The kubeconfig that Berth keeps was encrypted with another key."),
        _(
            "Put the key that was in use before into BERTH_SECRET_KEY_FALLBACKS, or paste the kubeconfig again."
        ),
    ),
    Fault(
        r"context",
        _("The kubeconfig has no complete context “%(context)s”."),
        _(
            "Check `kubectl config get-contexts --kubeconfig=…`, and name one of them; empty is the current one."
        ),
    ),
    Fault(
        r"",
        _("The kubeconfig file %(path)s cannot be understood."),
        _("Try it with `kubectl --kubeconfig=… version` on the machine that runs Berth."),
    ),
)

_NETWORK = (
    Fault(
        r"\(401\)",
        _("The cluster does not accept Berth's credentials: they are wrong, expired or revoked."),
        _("Create a new token (`kubectl create token`), or renew the client certificate, in the kubeconfig."),
    ),
    Fault(
        r"certificate has expired|certificate expired|alert certificate expired",
        _("A certificate has expired: the cluster's, or Berth's own client certificate."),
        _("Renew it (`kubeadm certs check-expiration` tells which), then write the kubeconfig again."),
    ),
    Fault(
        r"hostname mismatch|ip address mismatch|doesn't match|not valid for",
        _("The cluster's certificate is for another name or address than the one in the kubeconfig."),
        _("Use a name from the certificate, or add this name to the cluster's certificate."),
    ),
    Fault(
        r"certificate.verify.failed|self.signed|unable to get local issuer|unknown ca",
        _("The cluster's certificate was not signed by the authority in the kubeconfig."),
        _("Put the cluster's present CA into the kubeconfig (certificate-authority-data)."),
    ),
    Fault(
        r"wrong.version.number|record layer|http request|tlsv1|ssl",
        _("The server at this address does not speak TLS like an API server."),
        _("Check the address and port of the server in the kubeconfig; 6443 is usual."),
    ),
    Fault(
        r"name or service not known|name resolution|getaddrinfo|nodename nor servname|no address associated",
        _("This machine cannot resolve the name of the cluster's server."),
        _("Check the server's name in the kubeconfig, and the DNS of the machine that runs Berth."),
    ),
    Fault(
        r"connection refused|errno 111",
        _("Nothing listens at the cluster's address."),
        _("Is the API server running? Check the address and port in the kubeconfig, and firewalls."),
    ),
    Fault(
        r"no connection within|timed out|network is unreachable|no route to host",
        _("The cluster's address does not answer: packets get lost on the way."),
        _("Check the network and firewalls between the machine that runs Berth and the cluster."),
    ),
    Fault(
        r"no answer in time",
        _("The cluster accepts connections, but does not answer in time."),
        _("Check the load of the API server and etcd; then test again."),
    ),
    Fault(
        r"not json",
        _("The server at this address is not a Kubernetes API."),
        _("Check the address in the kubeconfig: a proxy or a sign-in page may stand in between."),
    ),
)


def explained(error: ClusterError, cluster: Cluster) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    text = (
        error.message.replace(cluster.kubeconfig_path or "\n", "").partition(": ")[2].casefold()
        or error.message
    )
    facts = {"path": cluster.kubeconfig_path or "–", "context": cluster.context or "–"}
    if isinstance(error, ClusterRefused):
        return str(_("The cluster refused: %(reason)s.")) % {"reason": error.message[:200].rstrip(".")}, str(
            _("Grant the right if one is named as missing.")
        )
    for fault in _FILE if isinstance(error, ClusterMisconfigured) else _NETWORK:
        if re.search(fault.sign, text):
            return str(fault.message) % facts, str(fault.hint)
    return error.message, str(_("Check the connection in the cluster's settings, and the network."))
