# What every program of a workspace or job sees: read by start.sh and job.sh, which set BERTH_START and say().

USER=$(id -un 2>/dev/null) || say "this user has no line in /etc/passwd, SSH will refuse it"
LOGNAME=$USER
: "${HOME:=/}" "${LANG:=C.UTF-8}"
while IFS=: read -r BERTH_NAME _ _ _ _ _ BERTH_SHELL; do
  [ "$BERTH_NAME" = "$USER" ] && [ -x "$BERTH_SHELL" ] && : "${SHELL:=$BERTH_SHELL}"
done </etc/passwd
[ -x "${SHELL:-}" ] || SHELL=/bin/sh
export USER LOGNAME HOME LANG SHELL
mkdir -p "$HOME" && cd "$HOME" && [ -w . ] || say "the home $HOME is not writable, nothing can be kept there"

# Of an old node, mounted because its container runtime does not bring it. What the image has of its own comes first.
if [ -n "${BERTH_DRIVER:-}" ]; then
  PATH=$PATH:$BERTH_DRIVER/bin
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$BERTH_DRIVER/lib64:$BERTH_DRIVER/lib"
fi

export PYTHONUSERBASE="${PYTHONUSERBASE:-$HOME/.local}" PIP_BREAK_SYSTEM_PACKAGES=1
PATH=$PYTHONUSERBASE/bin:$PATH
BERTH_PYTHON=$(command -v python3) && BERTH_LAYER=$("$BERTH_PYTHON" -I "$BERTH_START/python_layer.py")
if [ -n "${BERTH_LAYER:-}" ]; then
  export VIRTUAL_ENV="$BERTH_LAYER"
  export JUPYTER_PATH="$BERTH_LAYER/share/jupyter:$BERTH_LAYER/image/share/jupyter${JUPYTER_PATH:+:$JUPYTER_PATH}"
  PATH=$BERTH_LAYER/bin:$PATH
fi
export PATH

# clone ADDRESS: the repository, once
clone() {
  url=$1 name=${1%%[?#]*}
  name=${name%/} name=${name##*[/:]} name=${name%.git}
  case $name in "" | .* | -*) name=repository ;; esac
  # Others may use the same home: each clones once
  done=$PYTHONUSERBASE/share/berth/cloned-$name.${HOSTNAME:-} unfinished=$HOME/.cloning-$name.${HOSTNAME:-}
  [ -e "$done" ] || [ -e "$HOME/$name" ] && return
  log=$HOME/clone-of-$name.log
  export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=/bin/false GIT_SSH_COMMAND="ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new"
  mkdir -p "${done%/*}"
  rm -rf "$unfinished"
  # A password in the address stays out of the log
  { git clone -- "$url" "$unfinished" && mv "$unfinished" "$HOME/$name" && : >"$done"; } 2>&1 |
    sed 's#://[^/ ]*@#://#g' >"$log"
  if [ -e "$done" ]; then
    rm -f "$log"
  else
    echo "The repository could not be cloned: the reason stands above. The next start tries again." >>"$log"
    say "the repository was not cloned, see $log"
  fi
}
