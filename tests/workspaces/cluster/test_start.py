"""The start script in the trial's image, a virtual environment with JupyterLab and asyncssh; with and without sshd."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from websockets.exceptions import ConnectionClosed

from tests.workspaces.package import make_package
from tests.workspaces.podlike import UID, USER, Pod, pod_of_trial_image, until
from tests.workspaces.ways_in.notebook import Kernel, Terminal
from workspaces.cluster.pod import GRACE_SECONDS

MIXED = 'it\'s a "b" $x \\n `y` %d #z\nsecond line\ttab é 한글'
# Names that a shell script might use as its own variables
PLAIN = dict.fromkeys(
    ["name", "run", "secret", "start", "ssh", "jupyter", "python", "child", "code", "url"], "mine"
)
ENV = PLAIN | {
    "MY_ENV": MIXED,
    "EMPTY": "",
    "JUPYTER_TOKEN_FILE": "/berth/secret/jupyter-token",
    "BERTH_WORKSPACE": "demo",
}


@pytest.fixture(scope="module", params=["asyncssh", pytest.param("sshd", marks=pytest.mark.slow)])
def running(request: pytest.FixtureRequest) -> Iterator[Pod]:
    """A pod shared by the tests that only read, with either SSH server."""
    pod = pod_of_trial_image(sshd=request.param == "sshd")
    try:
        pod.start(ENV)
        pod.wait_for_ssh()
        pod.wait_for_jupyter()
        yield pod
    finally:
        pod.destroy()


@pytest.fixture
def pod() -> Iterator[Pod]:
    pod = pod_of_trial_image()
    try:
        yield pod
    finally:
        pod.destroy()


# --- Jupyter


def test_jupyter_answers_and_lets_nobody_in_without_the_token(running: Pod) -> None:
    assert running.get("/api")[0] == 200
    assert running.get("/api/contents")[0] == 403
    assert running.get("/api/contents", Authorization="token wrong")[0] == 403
    assert running.get("/api/contents", Authorization=f"token {running.token}")[0] == 200


def test_the_link_signs_in_by_one_redirect_and_no_page_tells_where_from(running: Pod) -> None:
    answer = subprocess.run(
        ["curl", "-sSi", f"http://{running.address}:8888/login?next=%2Flab&token={running.token}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "302 Found" in answer and "Location: /lab\n" in answer and "Set-Cookie: username-" in answer
    assert "Referrer-Policy: no-referrer" in answer


def ticket(pod: Pod, seconds: int = 60) -> str:
    what = f"{int(time.time()) + seconds}.{secrets.token_hex(8)}"
    return f"{what}.{hmac.new(pod.token.encode(), what.encode(), 'sha256').hexdigest()}"


def test_the_gateways_token_and_a_ticket_for_one_use_let_in(running: Pod) -> None:
    assert running.get("/api/contents", Authorization=f"token {running.gateway_token}")[0] == 200
    good, late = ticket(running), ticket(running, seconds=-1)
    forged = f"{good.rpartition('.')[0]}0.{good.rpartition('.')[2]}"
    codes = [running.get(f"/api/contents?token={given}")[0] for given in (late, forged, good, good)]
    assert codes == [403, 403, 200, 403]


@pytest.mark.slow
def test_a_replaced_token_ends_cookies_and_websockets_but_neither_kernels_nor_the_gateway(pod: Pod) -> None:
    pod.start(ENV)
    pod.wait_for_jupyter()
    sign_in = ["curl", "-sS", "-D-", "-o/dev/null", f"http://{pod.address}:8888/login?token={ticket(pod)}"]
    answer = subprocess.run(sign_in, capture_output=True, text=True, check=True).stdout
    cookie = next(line for line in answer.splitlines() if line.startswith("Set-Cookie: username-"))
    cookie = cookie.removeprefix("Set-Cookie: ").partition(";")[0]
    assert pod.get("/api/contents", Cookie=cookie)[0] == 200
    through_berth = SimpleNamespace(**vars(pod) | {"token": pod.gateway_token})
    with Kernel(through_berth) as kept, Terminal(pod) as direct:
        kept.run("x = 41")
        old, pod.token = pod.token, secrets.token_hex(32)
        pod.renew("jupyter-token", pod.token)
        with pytest.raises(ConnectionClosed):
            while True:
                direct.socket.recv(timeout=30)
        assert pod.get("/api/contents", Cookie=cookie)[0] == 403
        assert pod.get("/api/contents", Authorization=f"token {old}")[0] == 403
        assert pod.get("/api/contents", Authorization=f"token {pod.token}")[0] == 200
        assert kept.run("x + 1") == "42"


@pytest.mark.parametrize("sshd", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_removed_ssh_key_ends_its_sessions(sshd: bool, request: pytest.FixtureRequest) -> None:
    pod = pod_of_trial_image(sshd=sshd)
    request.addfinalizer(pod.destroy)
    pod.start(ENV)
    pod.wait_for_ssh()
    own = pod.authorized_keys.read_text()
    with subprocess.Popen(pod.ssh_line("echo in; exec sleep 600"), stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"in\n"
        pod.renew("authorized_keys", "")
        assert session.wait(60) == 255
    assert pod.ssh("true").returncode == 255
    pod.renew("authorized_keys", own)
    assert pod.ssh("true").returncode == 0


# What Berth's jump does for a colleague: a tunnel through Jupyter, then SSH.
THROUGH_JUPYTER = """
import os, socket, sys, threading
host, token = sys.argv[1:]
there = socket.create_connection((host, 8888))
there.sendall(f"GET /berth/ssh HTTP/1.1\\r\\nHost: {host}\\r\\nAuthorization: token {token}\\r\\n"
              "Connection: Upgrade\\r\\nUpgrade: berth-app\\r\\n\\r\\n".encode())
head = b""
while not head.endswith(b"\\r\\n\\r\\n"):
    head += there.recv(1) or sys.exit(9)
head.startswith(b"HTTP/1.1 101") or sys.exit(9)
def up():
    while piece := os.read(0, 65536):
        there.sendall(piece)
threading.Thread(target=up, daemon=True).start()
while piece := there.recv(65536):
    os.write(1, piece)
"""


def test_a_colleagues_key_opens_ssh_through_jupyter_and_nowhere_else(running: Pod) -> None:
    key = running.folder / "colleague"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    running.renew("colleague_keys", key.with_suffix(".pub").read_text())
    script = running.folder / "through.py"
    script.write_text(THROUGH_JUPYTER)

    def colleague(*options: str) -> subprocess.CompletedProcess[bytes]:
        line = [
            str(key) if word == str(running.key) else word for word in running.ssh_line("echo in", *options)
        ]
        return subprocess.run(line, capture_output=True, timeout=30, check=False)

    def through(token: str) -> str:
        return f"-oProxyCommand=python3 {script} {running.address} {token}"

    assert colleague().returncode == 255, "the workspace's own address is its owner's"
    assert colleague(through(running.gateway_token)).stdout == b"in\n", running.logged()
    assert colleague(through("guessed")).returncode == 255
    assert running.ssh("true", through(running.gateway_token)).returncode == 0
    running.renew("colleague_keys", "")
    assert colleague(through(running.gateway_token)).returncode == 255


def test_neither_log_nor_command_lines_nor_the_home_hold_the_token(running: Pod) -> None:
    running.get(f"/lab?token={running.token}")
    running.get(f"/nothing?token={running.token}")
    assert running.token not in running.logged()
    assert running.token not in running.says("cat /proc/[0-9]*/cmdline")
    assert running.token not in running.says("cat /proc/[0-9]*/environ 2>/dev/null || true")
    assert running.ssh(f"grep -r -e {running.token} ~").returncode == 1


@pytest.mark.slow
def test_a_cell_runs_and_ctrl_c_reaches_kernels_and_terminals(running: Pod) -> None:
    with Kernel(running) as kernel:
        assert kernel.run("1 + 1") == "2"
    ignored = "grep SigIgn /proc/self/status"
    with Kernel(running) as kernel, Terminal(running) as terminal:
        for line in (kernel.run(f"!{ignored}"), terminal.run(ignored), running.says(ignored)):
            assert int(line.split()[1], 16) & 0b110 == 0  # SIGINT and SIGQUIT


def test_a_kernel_is_interrupted_and_speaks_where_only_its_user_can_listen(running: Pod) -> None:
    with Kernel(running) as kernel:
        kernel.start("import time; print('asleep', flush=True); time.sleep(60)")
        kernel.wait_until_printed("asleep")
        kernel.interrupt()
        assert kernel.run("1 + 1") == "2"
        assert '"transport": "ipc"' in running.says("cat $JUPYTER_RUNTIME_DIR/kernel-*.json")
        assert running.says("stat -c %a $JUPYTER_RUNTIME_DIR/..").strip() == "700"


# --- SSH


def test_a_session_sees_what_a_notebooks_terminal_sees(running: Pod) -> None:
    command = "python -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    with Terminal(running) as terminal:
        in_terminal = json.loads(terminal.run(command))
        python = terminal.run("command -v python")
    over_ssh = json.loads(running.says(command))
    assert over_ssh["MY_ENV"] == MIXED and over_ssh["EMPTY"] == ""
    assert {name: over_ssh[name] for name in PLAIN} == PLAIN
    assert running.says("command -v python").strip() == python
    # Variables that Jupyter and the terminal's program add
    own = {"TERM", "SHLVL", "_", "PWD", "OLDPWD", "COLUMNS", "LINES", "PYXTERM_DIMENSIONS"}
    assert {name for name in set(in_terminal) - set(over_ssh) - own if not name.startswith("J")} == set()
    assert {name for name in set(over_ssh) - set(in_terminal) - own if not name.startswith("SSH_")} == set()
    shared = set(in_terminal) & set(over_ssh) - own
    assert {name: in_terminal[name] for name in shared} == {name: over_ssh[name] for name in shared}
    ours = {name for name in over_ssh if name.startswith(("BERTH_", "JUPYTER_TOKEN"))}
    assert ours == {"BERTH_KEEP_ALIVE"}  # the one that is for people


def test_exit_status_signals_input_and_large_output_arrive(running: Pod) -> None:
    assert running.ssh("exit 7").returncode == 7
    assert running.ssh("kill -9 $$").returncode == 255
    assert running.ssh("cat; echo err >&2", input=b"x" * 3_000_000).stdout == b"x" * 3_000_000
    assert running.ssh("echo out; echo err >&2").stderr == b"err\n"
    assert len(running.ssh("head -c 10000000 /dev/zero").stdout) == 10_000_000
    assert running.ssh("seq 200000", "-tt").stdout.splitlines()[-1] == b"200000"


def test_a_terminal_knows_its_kind_its_size_and_ctrl_c(running: Pod) -> None:
    script = (
        "import pty, os, sys, fcntl, termios, struct\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0: os.execvp('ssh', sys.argv[1:])\n"
        "fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 41, 101, 0, 0))\n"
        "seen, sent = b'', [(b'ready', b''), (b'41 101', b'\\x03'), (b'caught', None)]\n"
        "for wanted, answer in sent:\n"
        "    while wanted not in seen: seen += os.read(fd, 4096)\n"
        "    if answer: os.write(fd, answer)\n"
        "print(seen.decode())\n"
    )
    command = "trap 'echo caught; exit' INT; echo $TERM ready; while :; do stty size; sleep 0.1; done"
    line = ["ssh", *running.ssh_options(), "-tt", f"{USER}@{running.address}", command]
    done = subprocess.run(
        ["python3", "-c", script, *line], capture_output=True, text=True, timeout=20, check=False,
        env={"TERM": "xterm-256color", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )  # fmt: skip
    assert "xterm-256color ready" in done.stdout, done.stderr


def test_a_background_command_lets_go_of_the_session_and_lives_on(running: Pod) -> None:
    running.says("nohup sleep 61 >/dev/null 2>&1 & echo started")
    assert running.says("pgrep -f 'sleep 6[1]'")


def test_files_go_both_ways_by_sftp_and_scp(running: Pod, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(bytes(range(256)) * 8000)
    batch = f"put {tmp_path}/there\nrename there over\nget over {tmp_path}/back\nls -l\n"
    options = running.ssh_options(port_flag="-P")
    sftp = ["sftp", "-b", "-", *options, f"{USER}@{running.address}"]
    subprocess.run(sftp, input=batch.encode(), check=True, timeout=20, stdout=subprocess.DEVNULL)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()
    for protocol in ("-s", "-O"):
        copy = ["scp", "-q", protocol, *options, f"{USER}@{running.address}:over", str(tmp_path / protocol)]
        subprocess.run(copy, check=True, timeout=20)
        assert (tmp_path / protocol).read_bytes() == (tmp_path / "there").read_bytes()


def test_ports_are_forwarded_to_the_workspace(running: Pod) -> None:
    line = ["ssh", *running.ssh_options(), "-W", f"{running.address}:8888", f"{USER}@{running.address}"]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forward:
        assert forward.stdin is not None and forward.stdout is not None
        forward.stdin.write(b"GET /api HTTP/1.0\r\n\r\n")
        forward.stdin.flush()
        assert b"200 OK" in forward.stdout.readline()


def test_only_the_images_user_with_a_listed_key_comes_in(running: Pod, tmp_path: Path) -> None:
    assert running.ssh("true", user="root").returncode == 255
    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger], check=True)
    known = running.key
    try:
        running.key = stranger
        assert running.ssh("true").returncode == 255
    finally:
        running.key = known
    assert (
        running.ssh("true", "-o", "PreferredAuthentications=password,keyboard-interactive").returncode == 255
    )


def test_keys_that_change_while_it_runs_count_at_the_next_sign_in(running: Pod) -> None:
    listed = running.authorized_keys.read_text()
    running.authorized_keys.write_text("")
    assert running.ssh("true").returncode == 255
    running.authorized_keys.write_text(f"not a key\n{listed}")
    # The end of sessions whose key was removed may still take one that begins in that moment
    until("it counts again", lambda: running.ssh("true").returncode == 0)


@pytest.mark.slow
def test_who_does_not_sign_in_keeps_nobody_else_out_for_long(pod: Pod) -> None:
    pod.start()
    pod.wait_for_ssh()
    with contextlib.ExitStack() as idle:
        for _ in range(30):
            idle.enter_context(socket.create_connection((pod.address, 2222))).recv(4)
        assert pod.ssh("true").returncode == 255
    until("room", lambda: pod.ssh("true").returncode == 0)


# --- VS Code: a server of Python's stands for code-server, which the trial's image lacks


def test_code_server_is_started_on_loopback_alone_and_again_when_it_ends(pod: Pod) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    programs = pod.home / ".local" / "bin"
    programs.mkdir(parents=True)
    (programs / "code-server").write_text(
        '#!/bin/sh\necho "$@ ${PORT:-none}" >>"$HOME/started"\n'
        f"exec python3 -m http.server --bind 127.0.0.1 {port}\n"
    )
    for path in (programs.parent, programs, programs / "code-server"):
        path.chmod(0o755)
        os.chown(path, UID, UID)
    pod.start(ENV | {"BERTH_CODE_SERVER": str(port), "PORT": "8080"})
    wanted = f"--auth none --bind-addr 127.0.0.1:{port} --disable-telemetry --disable-update-check /home/jovyan none"
    until("it runs", (pod.home / "started").exists)
    assert (pod.home / "started").read_text().splitlines() == [wanted]
    until("it answers", lambda: answers("127.0.0.1", port))
    assert not answers(pod.address, port)
    assert pod.stop() < GRACE_SECONDS
    assert not answers("127.0.0.1", port)


def answers(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


# --- Stop and start


@pytest.mark.slow
def test_what_pip_installed_and_wrote_is_there_after_stop_and_start(pod: Pod) -> None:
    make_package(pod.home / "pkg", owner=UID)
    pod.start(ENV)
    pod.wait_for_jupyter()
    with Kernel(pod) as kernel:
        assert "Successfully installed" in kernel.run("%pip install ./pkg")
        assert kernel.run("import greeting; greeting.word") == "'hello'"
        assert "already" in kernel.run("!pip install greeting")
        kernel.run("open('kept', 'w').write('kept')")
    assert pod.stop() < GRACE_SECONDS
    pod.start(ENV)
    pod.wait_for_jupyter()
    pod.wait_for_ssh()
    assert pod.says("cat kept; greet") == "kepthello\n"
    with Kernel(pod) as kernel:
        assert kernel.run("import greeting; greeting.word") == "'hello'"
    # The image's own commands find it too, and a package of the image can be installed in another version
    assert pod.says("ipython -c 'import greeting; print(greeting.word)'") == "hello\n"
    make_package(pod.home / "six", name="six", version="999", owner=UID)
    assert "Not uninstalling six" in pod.says("pip install ./six")
    assert pod.says("python -c 'import six; print(six.word)'") == "hello\n"


@pytest.mark.slow
def test_a_stop_takes_two_seconds_whatever_runs(pod: Pod) -> None:
    pod.start()
    pod.wait_for_jupyter()
    pod.wait_for_ssh()
    pod.says(
        "trap '' HUP; (trap 'echo flushed >~/flushed; exit' TERM; while :; do sleep 0.05; done) >/dev/null 2>&1 &"
    )
    with Kernel(pod) as kernel:
        kernel.start(
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)\n"
            "while True: time.sleep(9)"
        )
        kernel.wait_until_printed("deaf")
        assert pod.stop() < 2.5
    assert (pod.home / "flushed").read_text() == "flushed\n"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["dash", "bash", "bash --posix", "busybox ash"])
def test_it_runs_in_any_shell(shell: str) -> None:
    program = shutil.which(shell.split(maxsplit=1)[0])
    if program is None:
        pytest.skip(f"{shell} is not installed here")
    pod = pod_of_trial_image(shell=shell)
    pod.see(Path(program))
    try:
        pod.start(ENV | {"BERTH_REPOSITORY": "/nowhere/at/all", "BERTH_DRIVER": "/usr/local/nvidia"})
        pod.wait_for_ssh()
        assert pod.says('printf %s "$MY_ENV"') == MIXED
        # The driver of an old node is found, but the image's own programs come before it.
        assert pod.says('printf %s "$LD_LIBRARY_PATH"') == "/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
        assert pod.says('printf %s "$PATH"').endswith(":/usr/local/nvidia/bin")
        until("the clone's end", lambda: "not cloned" in pod.logged())
        pod.wait_for_jupyter()
        assert pod.stop() < GRACE_SECONDS
        assert "rror" not in pod.logged()
    finally:
        pod.destroy()


@pytest.mark.slow
def test_a_broken_profile_keeps_nobody_out(pod: Pod) -> None:
    for name in (".profile", ".bash_profile"):
        (pod.home / name).write_text("exit 1\nif then (\n")
    pod.start()
    pod.wait_for_ssh()
    assert pod.says("echo in") == "in\n"
    assert b"in" in pod.ssh("", "-tt", input=b"echo i''n\nexit\n").stdout
    pod.wait_for_jupyter()
    with Terminal(pod) as terminal:
        assert terminal.run("echo in") == "in"


@pytest.mark.slow
def test_the_ssh_server_is_started_again_when_it_dies(pod: Pod) -> None:
    pod.start()
    pod.wait_for_ssh()
    pod.ssh("kill -9 $(pgrep -f [s]sh_server.py)")
    until("told", lambda: "starting it again" in pod.logged())
    until("SSH again", lambda: pod.ssh("true").returncode == 0)


# --- The repository


@pytest.mark.slow
def test_a_repository_is_cloned_at_the_first_start_only(pod: Pod) -> None:
    make_repository(pod.folder / "team.git")
    pod.visible = [*pod.visible, pod.folder / "team.git"]
    env = {"BERTH_REPOSITORY": f"file://{pod.folder}/team.git"}
    pod.start(env)
    until("the clone", (pod.home / "team" / "README").exists)
    assert (pod.home / "team" / "README").stat().st_uid == pod.home.stat().st_uid
    until("its log's end", lambda: not list(pod.home.glob("clone-of-*")))
    pod.stop()
    (pod.home / "team").rename(pod.home / "renamed")
    pod.start(env)
    pod.wait_for_jupyter()
    pod.stop()
    assert not (pod.home / "team").exists()


@pytest.mark.slow
def test_a_clone_that_failed_says_why_without_the_password_and_is_tried_again(pod: Pod) -> None:
    env = {"BERTH_REPOSITORY": "http://me:hunter2@127.0.0.1:9/team.git"}
    pod.start(env)
    told = pod.home / "clone-of-team.log"
    until("the message", lambda: told.exists() and "tries again" in told.read_text())
    assert "hunter2" not in told.read_text() + pod.logged()
    pod.wait_for_jupyter()
    pod.stop()
    told.unlink()
    pod.start(env)
    until("the second try", told.exists)


# --- Helpers


def make_repository(path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--initial-branch=main", path], check=True)
    (path / "README").write_text("read me\n")
    identity = ["-c", "user.name=alice", "-c", "user.email=alice@example.org"]
    subprocess.run(["git", "-C", path, "add", "README"], check=True)
    subprocess.run(["git", "-C", path, *identity, "commit", "-q", "-m", "Begin"], check=True)
    subprocess.run(["chmod", "-R", "a+rX", path], check=True)
    subprocess.run(["chown", "-R", f"{UID}:{UID}", path], check=True)
