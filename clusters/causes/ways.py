"""Messages that reach people without passing the cluster: printed by ssh, VS Code, browsers, proxies and Jupyter."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause

# Git over SSH prints the same words about its own server.
_NOT_OF_GIT = r"^(?!.*(?:\bgit@|github|gitlab|bitbucket|from remote repository))"

CAUSES = (
    Cause(
        "ssh_host_key_changed",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key (?:for \S+ )?has changed|Host key verification failed"
        r"|POTENTIAL SECURITY BREACH",
        _("Your computer remembers another SSH host key for this address."),
        _(
            "Every workspace has a host key of its own, and addresses are given to others later. Compare the "
            "fingerprint with the one on the workspace's page. If it is the same, remove the old key: "
            "ssh-keygen -R ADDRESS (for another port than 22: ssh-keygen -R '[ADDRESS]:PORT')."
        ),
    ),
    Cause(
        "ssh_key_refused",
        _NOT_OF_GIT
        + r".*(?:Permission denied \([\w,-]*publickey|bad ownership or modes for|Server refused our key"
        r"|UNPROTECTED PRIVATE KEY FILE|\bare too open\b|Too many authentication failures"
        r"|No supported authentication methods available)",
        _("The SSH server did not accept your key."),
        _(
            "Check that the key on your computer is one of those in your profile, and name it: ssh -i FILE. A key that "
            "was added after the start is accepted within two minutes. Nobody else may read your private key or write "
            "to ~/.ssh: chmod 700 ~/.ssh; chmod 600 FILE."
        ),
    ),
    Cause(
        "ssh_not_connected",
        _NOT_OF_GIT
        + r".*(?:stdio forwarding failed|(?:kex|ssh)_exchange_identification|\bssh: connect to host"
        r"|ssh: Could not resolve hostname|Connection closed by UNKNOWN port|channel \d+: open failed)",
        _("SSH does not reach the workspace."),
        _(
            "Check that the workspace runs, and copy the command from its page again: its address may be another one "
            "now. If your network does not reach that address, use the command through Berth there. If that does not "
            "help, tell an admin: a firewall may be in the way."
        ),
    ),
    Cause(
        "websocket_not_signed_in",
        r"Couldn't authenticate WebSocket|WebSocket[^\n]*(?:response code: 40[13]\b|HTTP 40[13]\b)",
        _("Jupyter refused a notebook's or terminal's connection: your browser showed no valid sign-in."),
        _(
            "Open JupyterLab again from the workspace's page; that signs you in anew. Allow cookies for its address, "
            "also in private windows and in extensions that block trackers."
        ),
    ),
    Cause(
        "websocket_blocked",
        r'Can "Upgrade" only to "WebSocket"|WebSocket connection to \S+ failed|during WebSocket handshake'
        r"|/channels\?[^\n]*socket hang up|WebSocket is already in CLOSING|\b400 GET /\S*/(?:channels\b|websocket/)",
        _("A proxy on the way does not pass WebSockets, so notebooks and terminals cannot connect."),
        _(
            "Try another network, or without a VPN. An admin has to let every proxy in front of Berth pass WebSockets, "
            "and keep quiet connections open."
        ),
        "admin",
    ),
)
