"""Token of the trial cluster's simulated agents: like any agent's, in a file for them."""

from pathlib import Path

from accounts.errors import NotSignedIn
from clusters.models import Cluster
from monitoring.intake import tokens
from portal.up.state import write_private

NAME = "Simulated agents of the trial cluster"


def provide(cluster: Cluster, file: Path) -> None:
    """Keep the token in the file if it is valid, else issue a new one."""
    try:
        tokens.authenticate(file.read_text().strip())
    except (FileNotFoundError, NotSignedIn):
        _, secret = tokens.issue(None, cluster, NAME)
        write_private(file, secret)
