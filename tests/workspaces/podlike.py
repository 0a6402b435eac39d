"""Run the start script as a pod would: another user, no capabilities, a root of its own with /berth, a fresh /tmp."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import pytest

from portal.up.plan import REPOSITORY
from workspaces import start

IMAGE = REPOSITORY / ".dev" / "image"
UNPACKED = REPOSITORY / ".dev" / "sshd"
UID = 61_842
USER = "jovyan"
HOME = "/home/jovyan"
T = TypeVar("T")

# A new root of the host's folders, except those that a container has of its own. Only links and folders, so it is fast.
ENTER = """
set -eu
mount -t tmpfs -o mode=755 root "$ROOT"
for top in /*; do
  if [ -L "$top" ]; then cp -P "$top" "$ROOT"
  elif [ -d "$top" ]; then mkdir -p "$ROOT$top"
    case $top in
      /tmp) mount -t tmpfs -o mode=1777 tmp "$ROOT$top" ;;
      /root|/home|/berth|/proc) ;;
      *) mount --rbind "$top" "$ROOT$top" ;;
    esac
  fi
done
mkdir -p "$ROOT/berth" "$ROOT/home/jovyan" "$ROOT/proc"
mount -t proc proc "$ROOT/proc"
mount --bind -o ro "$POD/berth" "$ROOT/berth"
mount --bind "$POD/home" "$ROOT/home/jovyan"
for file in passwd group; do mount --bind "$POD/berth/start/$file" "$ROOT/etc/$file"; done
for file in $HIDDEN; do mount --bind /dev/null "$ROOT$file"; done
for folder in $VISIBLE; do mkdir -p "$ROOT$folder"; mount --bind "$folder" "$ROOT$folder"; done
cd /
exec chroot "$ROOT" setpriv --reuid=$UID_ --regid=$UID_ --clear-groups --no-new-privs --bounding-set=-all \
  --inh-caps=-all env -i "$@"
"""


def until(what: str, look: Callable[[], T], seconds: float = 60) -> T:
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.03)
    return answer


class Pod:
    """A workspace: a home that stays, and a container that can be started and stopped over it."""

    def __init__(self, *, shell: str = "/bin/sh", path: str = "/usr/local/bin:/usr/bin:/bin") -> None:
        if os.geteuid():
            pytest.skip("only root can give a process another user and a root of its own")
        self.folder = Path(tempfile.mkdtemp(prefix="berth-pod-"))
        self.folder.chmod(0o755)
        self.shell, self.path = shell, path
        self.address = f"127.{random.randint(64, 250)}.{random.randint(1, 250)}.{random.randint(2, 250)}"
        self.port, self.host = 8888, f"{self.address}:8888"
        self.token, self.gateway_token = secrets.token_hex(32), secrets.token_hex(32)
        self.visible: list[Path] = []
        self.hidden: list[Path] = []
        self.env: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "log"
        self.home = self.folder / "home"
        self.key = self.folder / "id"
        self._lay_out()

    def _lay_out(self) -> None:
        mounted, secret = self.folder / "berth" / "start", self.folder / "berth" / "secret"
        for folder in (mounted, secret, self.home):
            folder.mkdir(parents=True)
        for name, text in start.files().items():
            (mounted / name).write_text(text)
            (mounted / name).chmod(0o555)
        (mounted / "passwd").write_text(
            f"root:x:0:0:root:/root:/usr/sbin/nologin\n{USER}:x:{UID}:{UID}::{HOME}:/bin/bash\n"
        )
        # No group "tty": sshd could not give a terminal to it without privileges
        (mounted / "group").write_text(f"root:x:0:\n{USER}:x:{UID}:\nnogroup:x:65534:\n")
        for path in (self.key, secret / "ssh_host_ed25519_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
        (secret / "ssh_host_ed25519_key.pub").rename(self.folder / "host.pub")
        shutil.copy(self.folder / "host.pub", secret / "status_key")
        self.authorized_keys = secret / "authorized_keys"
        shutil.copy(self.key.with_suffix(".pub"), self.authorized_keys)
        (secret / "jupyter-token").write_text(self.token)
        (secret / "gateway-token").write_text(self.gateway_token)
        for path in secret.iterdir():
            os.chown(path, 0, UID)
            path.chmod(0o440)
        os.chown(self.home, UID, UID)
        host = (self.folder / "host.pub").read_text()
        (self.folder / "known_hosts").write_text(f"pod {host}")

    def renew(self, name: str, text: str) -> None:
        """Replace a value of the mounted Secret, as the kubelet does."""
        path = self.folder / "berth" / "secret" / name
        new = path.with_suffix(".new")
        new.write_text(text)
        os.chown(new, 0, UID)
        new.chmod(0o440)
        new.replace(path)

    def see(self, program: Path) -> None:
        """Put a program's folder on PATH, also if it was only unpacked somewhere and not installed."""
        self.path += f":{program.parent}"
        if not program.resolve().is_relative_to("/usr"):
            self.visible.append(program.parent)

    def start(self, env: Mapping[str, str] | None = None) -> None:
        variables = {"HOME": HOME, "PATH": self.path, "POD_IP": self.address, **self.env, **(env or {})}
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--propagation", "private",
                 "bash", "-c", ENTER, "enter", *(f"{k}={v}" for k, v in variables.items()),
                 *self.shell.split(), "/berth/start/start.sh"],
                env={"PATH": os.environ["PATH"], "ROOT": str(root), "POD": str(self.folder), "UID_": str(UID),
                     "VISIBLE": " ".join(map(str, self.visible)), "HIDDEN": " ".join(map(str, self.hidden))},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Process id of the start script, as the host sees it: the only child of unshare."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def stop(self) -> float:
        """Send SIGTERM as the kubelet does. Return the seconds until nothing of the pod is left."""
        assert self.process is not None
        began = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        self.process.wait(20)
        return time.monotonic() - began

    def destroy(self) -> None:
        until("ended", self._kill)
        # Its processes die with their namespace a moment later, and may write until then
        until("removed", self._remove)

    def _kill(self) -> bool:
        """Kill the first process, and with that all of its namespace. It may not be there yet, or no more."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(IndexError, OSError):
                os.kill(self.pid, signal.SIGKILL)
            return False
        return True

    def _remove(self) -> bool:
        shutil.rmtree(self.folder, ignore_errors=True)
        return not self.folder.exists()

    def logged(self) -> str:
        return self.log.read_text(errors="replace")

    # --- Actions of a person

    def answers(self, port: int) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((self.address, port)) == 0

    def serves(self) -> bool:
        try:
            return self.get("/api")[0] == HTTPStatus.OK
        except OSError:
            return False

    def wait_for_ssh(self) -> None:
        until("SSH", lambda: self.answers(2222))

    def wait_for_jupyter(self) -> None:
        until("Jupyter", self.serves)

    def ssh_options(self, *, port_flag: str = "-p") -> list[str]:
        known = f"UserKnownHostsFile={self.folder / 'known_hosts'}"
        options = ["IdentitiesOnly=yes", "BatchMode=yes", "HostKeyAlias=pod", known, "ConnectTimeout=5"]
        return ["-F", "none", port_flag, "2222", "-i", str(self.key), *(f"-o{option}" for option in options)]

    def ssh_line(self, command: str, *options: str, user: str = USER) -> list[str]:
        where = f"{user}@{self.address}"
        return ["ssh", *self.ssh_options(), *options, where, *([command] if command else [])]

    def ssh(
        self, command: str, *options: str, user: str = USER, **how: object
    ) -> subprocess.CompletedProcess[bytes]:
        line = self.ssh_line(command, *options, user=user)
        return subprocess.run(line, **{"capture_output": True, "timeout": 30, "check": False, **how})  # type: ignore[call-overload]

    def says(self, command: str) -> str:
        """Run a command over SSH, which must succeed. Return what it prints."""
        done = self.ssh(command)
        assert done.returncode == 0, done
        return str(done.stdout.decode())

    def get(self, path: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        request = urllib.request.Request(f"http://{self.address}:8888{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()


def folders_of_environment(prefix: Path) -> list[Path]:
    """Folders of a virtual environment that a pod must see: its own and its interpreter's."""
    interpreter = (prefix / "bin" / "python").resolve().parent.parent
    return [prefix] if interpreter.is_relative_to("/usr") else [prefix, interpreter]


def find_sshd() -> Path | None:
    """Find the machine's sshd, or the one that `make test` unpacked: if installed, it would start and take port 22."""
    found = shutil.which(
        "sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin:{UNPACKED / 'usr/sbin'}"
    )
    return Path(found) if found else None


def pod_of_trial_image(*, sshd: bool = False, shell: str = "/bin/sh") -> Pod:
    """JupyterLab and asyncssh in a virtual environment; on request with the real sshd beside it."""
    pod = Pod(path=f"{IMAGE}/bin:/usr/local/bin:/usr/bin:/bin", shell=shell)
    pod.visible = folders_of_environment(IMAGE)
    add_sshd(pod) if sshd else hide_sshd(pod)
    return pod


def add_sshd(pod: Pod) -> None:
    found = find_sshd()
    if found is None:
        pytest.skip("sshd is not installed here (apt install openssh-server)")
    pod.see(found)
    if found.is_relative_to(UNPACKED):
        pod.env["LD_LIBRARY_PATH"] = ":".join(map(str, UNPACKED.glob("usr/lib/*-linux-gnu")))
        pod.visible.append(UNPACKED)


def hide_sshd(pod: Pod) -> None:
    pod.hidden += filter(Path.exists, map(Path, ("/usr/sbin/sshd", "/usr/local/sbin/sshd")))
