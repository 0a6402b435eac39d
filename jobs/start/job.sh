#!/bin/sh
# Runs a job's command, or the script that was pasted, in what a workspace's terminal sees too.
# Lies in /berth/start, beside /berth/secret; runs as any user and needs nothing in the image but a POSIX shell.

BERTH_START=$(cd "${0%/*}" && pwd)
BERTH_SECRET=${BERTH_START%/*}/secret
say() { echo "job: $*" >&2; }

. "$BERTH_START/environment.sh"

[ -z "${BERTH_REPOSITORY:-}" ] || clone "$BERTH_REPOSITORY" </dev/null
unset BERTH_REPOSITORY BERTH_DRIVER

BERTH_CHECKPOINT_DIR=${BERTH_CHECKPOINTS:-$HOME}/.berth/jobs/$BERTH_JOB/$BERTH_INDEX
mkdir -p "$BERTH_CHECKPOINT_DIR" || say "there is no place for checkpoints"
export BERTH_CHECKPOINT_DIR
unset BERTH_CHECKPOINTS

if [ $# -eq 0 ]; then
  # A copy, because the Secret's files are not executable; a script without a first line "#!" is one for sh
  BERTH_SCRIPT=$(mktemp) && cat "$BERTH_SECRET/script" >"$BERTH_SCRIPT" && chmod 700 "$BERTH_SCRIPT" || exit 126
  case $(head -c 2 "$BERTH_SCRIPT") in "#!") set -- "$BERTH_SCRIPT" ;; *) set -- /bin/sh "$BERTH_SCRIPT" ;; esac
fi
if [ -n "${BERTH_FRAMEWORK:-}" ]; then
  . "$BERTH_START/distributed.sh"
  distributed "$@"
fi
exec "$@"
