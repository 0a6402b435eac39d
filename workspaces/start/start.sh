#!/bin/sh
# Starts what a workspace offers: SSH on port 2222, Jupyter on 8888, and the repository that its launch named.
# Lies in /berth/start, beside /berth/secret; runs as any user and needs nothing in the image but a POSIX shell.
# What the image lacks is said in the log and left out: one missing part never keeps the others from starting.
# Its own variables are all BERTH_*, names that no launch may set: another name might be a person's, and be spoilt.

BERTH_START=$(cd "${0%/*}" && pwd)
BERTH_SECRET=${BERTH_START%/*}/secret
say() { echo "workspace: $*" >&2; }

# ---- What every session sees, over SSH as in a notebook's terminal ------------------------------------------------

BERTH_JUPYTER=$(command -v jupyter-lab)
. "$BERTH_START/environment.sh"

BERTH_CLONE=${BERTH_REPOSITORY:-}
BERTH_VSCODE=${BERTH_CODE_SERVER:-}
unset JUPYTER_TOKEN JUPYTER_TOKEN_FILE SHLVL OLDPWD $(env | sed -n 's/^\(BERTH_[A-Za-z0-9_]*\)=.*/\1/p')

# What belongs to this start alone: keys, kernels' connection files, the environment for sessions. Never in the home.
BERTH_RUN=$(mktemp -d) || exit 1
trap 'rm -rf "$BERTH_RUN"' EXIT
export JUPYTER_RUNTIME_DIR="$BERTH_RUN/jupyter"
# Touch this file to keep the workspace from being stopped as idle; status.sh looks at it.
export BERTH_KEEP_ALIVE="$BERTH_RUN/keep-alive"

[ -z "$BERTH_CLONE" ] || clone "$BERTH_CLONE" </dev/null &

# ---- SSH ----------------------------------------------------------------------------------------------------------

BERTH_LIMITS=no-port-forwarding,no-pty,no-agent-forwarding,no-X11-forwarding
write_sshd_files() {
  umask 077
  cp "$BERTH_SECRET/ssh_host_ed25519_key" "$BERTH_RUN/host_key"
  # sshd hands its sessions none of its own environment, and SetEnv cannot carry a line break: so each session reads
  # this file first. Its shell is no login shell, because /etc/profile would set another PATH than a notebook has.
  export -p >"$BERTH_RUN/environment"
  BERTH_ASKS=
  [ ! -r "$BERTH_SECRET/status_key" ] || read -r BERTH_TYPE BERTH_ASKS _ <"$BERTH_SECRET/status_key"
  cat >"$BERTH_RUN/session" <<SESSION
BERTH_ASKS='$BERTH_ASKS'
BERTH_STATUS='$BERTH_START/status.sh'
SESSION
  cat >>"$BERTH_RUN/session" <<'SESSION'
. "${0%/*}/environment"
# Berth's own key does one thing, whatever it asks for
BERTH_CAME=
[ -z "$SSH_USER_AUTH" ] || read -r _ _ BERTH_CAME _ <"$SSH_USER_AUTH"
[ -z "$BERTH_ASKS" ] || [ "$BERTH_CAME" != "$BERTH_ASKS" ] || exec /bin/sh "$BERTH_STATUS"
unset BERTH_ASKS BERTH_STATUS BERTH_CAME SSH_USER_AUTH
set -- ${SSH_ORIGINAL_COMMAND+-c "$SSH_ORIGINAL_COMMAND"}
unset SSH_ORIGINAL_COMMAND SHLVL MAIL
exec "$SHELL" "$@"
SESSION
  cat >"$BERTH_RUN/sshd_config" <<CONFIG
Port 2222
ListenAddress ${POD_IP:-0.0.0.0}
HostKey $BERTH_RUN/host_key
PidFile none
UsePAM no
AllowUsers $USER
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication yes
StrictModes no
AllowTcpForwarding yes
AllowAgentForwarding no
X11Forwarding no
PermitUserRC no
PrintMotd no
LoginGraceTime 30
MaxStartups 10:30:60
ClientAliveInterval 60
ForceCommand exec /bin/sh $BERTH_RUN/session
# Bash reads ~/.bashrc in the first shell under sshd: this says that it is not the first, so it is read once
SetEnv SHLVL=1
Subsystem sftp $1
CONFIG
  # An old sshd does not say by which key somebody came: then Berth's own, which may do one thing only, is not let in
  if [ -n "$BERTH_ASKS" ] && "$BERTH_SSHD" -t -o ExposeAuthInfo=yes -f "$BERTH_RUN/sshd_config" 2>/dev/null; then
    echo "$BERTH_LIMITS $BERTH_TYPE $BERTH_ASKS" >"$BERTH_RUN/status_key"
    echo "ExposeAuthInfo yes"
    echo "AuthorizedKeysFile $BERTH_SECRET/authorized_keys $BERTH_RUN/status_key"
  else
    echo "AuthorizedKeysFile $BERTH_SECRET/authorized_keys"
  fi >>"$BERTH_RUN/sshd_config"
  # Colleagues come in through Berth and Jupyter alone (berth_apps.py), so from this pod's own address
  [ -z "$POD_IP" ] || cat >>"$BERTH_RUN/sshd_config" <<CONFIG
Match Address $POD_IP
  AuthorizedKeysFile $BERTH_SECRET/authorized_keys $BERTH_SECRET/colleague_keys
CONFIG
}

# watch_keys: when a key is removed from the list, all sessions end; whoever still has a key connects again. sshd itself
# only checks new connections. A session is a child of the listening sshd.
watch_keys() {
  keys=$BERTH_SECRET/authorized_keys known=$(cat "$keys")
  while sleep 5; do
    now=$(cat "$keys") || continue
    [ "$now" != "$known" ] || continue
    gone=$(echo "$known" | while read -r key; do
      case "
$now
" in *"
$key
"*) ;; *) echo gone ;; esac
    done)
    known=$now
    [ -n "$gone" ] || continue
    say "an SSH key was removed, all sessions end"
    for stat in /proc/[0-9]*/stat; do
      read -r pid _ _ parent _ <"$stat" && [ "$parent" = "$1" ] && kill -TERM "$pid"
    done 2>/dev/null
  done
}

# keep_running COMMAND…: starts it again when it dies; 3 says that it can never run here
keep_running() {
  trap 'kill "$BERTH_CHILD" "$BERTH_WATCH" 2>/dev/null; exit' TERM
  while :; do
    "$@" &
    BERTH_CHILD=$!
    echo "$BERTH_CHILD" >"$BERTH_RUN/ssh"
    [ -z "$BERTH_SSHD" ] || watch_keys "$BERTH_CHILD" &
    BERTH_WATCH=$!
    wait "$BERTH_CHILD"
    BERTH_ENDED=$?
    kill "$BERTH_WATCH" 2>/dev/null
    [ $BERTH_ENDED -ne 3 ] || break
    say "the SSH server ended, starting it again"
    sleep 1
  done
  say "this image has neither sshd nor a Python with asyncssh: there is no SSH"
}

BERTH_SSHD=$(PATH=$PATH:/usr/sbin:/usr/local/sbin:/sbin command -v sshd)
if [ -n "$BERTH_SSHD" ]; then
  for BERTH_SFTP in openssh/sftp-server ssh/sftp-server; do
    for BERTH_FOLDER in "${BERTH_SSHD%/sbin/sshd}/lib" "${BERTH_SSHD%/sbin/sshd}/libexec"; do
      [ -x "$BERTH_FOLDER/$BERTH_SFTP" ] && BERTH_SFTP_SERVER=$BERTH_FOLDER/$BERTH_SFTP
    done
  done
  (write_sshd_files "${BERTH_SFTP_SERVER:-internal-sftp}")
  keep_running "$BERTH_SSHD" -D -e -f "$BERTH_RUN/sshd_config" &
else
  keep_running "${BERTH_PYTHON:-false}" "$BERTH_START/ssh_server.py" &
fi
BERTH_SSH=$!

# ---- VS Code, if the image has it: on this container's own address alone, behind Berth's gateway -------------------

run_code_server() {
  trap 'kill "$BERTH_CHILD" 2>/dev/null; exit' TERM
  unset PORT CODE_SERVER_HOST # which it would listen at instead
  while :; do
    code-server --auth none --bind-addr "127.0.0.1:$BERTH_VSCODE" --disable-telemetry --disable-update-check "$HOME" &
    BERTH_CHILD=$!
    wait "$BERTH_CHILD"
    say "code-server ended, starting it again"
    sleep 5
  done
}

BERTH_VSCODE_PID=
if [ -n "$BERTH_VSCODE" ] && command -v code-server >/dev/null; then
  run_code_server &
  BERTH_VSCODE_PID=$!
elif [ -n "$BERTH_VSCODE" ]; then
  say "this image has no code-server: there is no VS Code in the browser"
fi

# ---- Jupyter, and the end -----------------------------------------------------------------------------------------

stop() {
  trap '' TERM INT
  kill -TERM $BERTH_SERVED $BERTH_SSH $BERTH_VSCODE_PID 2>/dev/null
  (sleep 1.2 && kill -KILL $BERTH_SERVED 2>/dev/null) &
  wait $BERTH_SERVED
  # Whatever else runs gets a moment to write its files. Only in a pod does -1 mean nothing but the pod's own.
  case $BERTH_START in
  /berth/*)
    kill -TERM -1 2>/dev/null
    for _ in 1 2 3 4 5; do kill -0 -1 2>/dev/null && sleep 0.1; done
    ;;
  esac
  exit 0
}

if [ -n "$BERTH_JUPYTER" ]; then
  "$BERTH_JUPYTER" --config="$BERTH_START/jupyter_config.py" &
  BERTH_SERVED=$!
else
  say "this image has no JupyterLab: there is SSH alone"
  BERTH_SERVED=$BERTH_SSH
fi
trap stop TERM INT
wait "$BERTH_SERVED"
BERTH_CODE=$?
say "Jupyter ended by itself with exit code $BERTH_CODE"
kill -TERM $BERTH_SSH $BERTH_VSCODE_PID 2>/dev/null
exit $BERTH_CODE
