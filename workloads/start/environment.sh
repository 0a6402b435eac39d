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

# The site's own certificate authorities beside the image's: a bundle for each program that knows only one file. What the
# image or the person has set stays.
trust() {
  for BERTH_FILE in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem \
    /etc/ssl/cert.pem ""; do
    [ ! -s "$BERTH_FILE" ] || break
  done
  for BERTH_ROOTS in certifi pip._vendor.certifi; do
    [ -z "$BERTH_FILE" ] || break
    BERTH_FILE=$("${BERTH_PYTHON:-false}" -I -c "import $BERTH_ROOTS as roots; print(roots.where())" 2>/dev/null)
  done
  BERTH_BUNDLE=$(mktemp) || return
  { [ ! -r "$BERTH_FILE" ] || cat "$BERTH_FILE"; echo; cat "$1"; } >"$BERTH_BUNDLE"
  : "${NODE_EXTRA_CA_CERTS:=$1}" "${SSL_CERT_FILE:=$BERTH_BUNDLE}" "${REQUESTS_CA_BUNDLE:=$BERTH_BUNDLE}" \
    "${CURL_CA_BUNDLE:=$BERTH_BUNDLE}" "${GIT_SSL_CAINFO:=$BERTH_BUNDLE}" "${PIP_CERT:=$BERTH_BUNDLE}"
  export NODE_EXTRA_CA_CERTS SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT
}
[ ! -r "$BERTH_START/certificates.pem" ] || trust "$BERTH_START/certificates.pem"

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
