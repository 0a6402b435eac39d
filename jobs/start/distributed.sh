# Runs a distributed job's command on this node: read by job.sh. The manifest brings MASTER_ADDR, MASTER_PORT,
# WORLD_SIZE, LOCAL_WORLD_SIZE and NPROC; Kubernetes brings the pod's index.

NODE_RANK=${JOB_COMPLETION_INDEX:-0}
export NODE_RANK
MOST_SECONDS_FOR_A_NAME=300
SECONDS_TO_END=20

# distributed COMMAND...: once the first rank has a name, as the framework needs it
distributed() {
  framework=$BERTH_FRAMEWORK
  unset BERTH_FRAMEWORK
  wait_for_name "$MASTER_ADDR"
  case $framework in torchrun) torchrun_it "$@" ;; *) ranks "$@" ;; esac
}

# wait_for_name NAME: programs that start with their node may be there before the first rank's pod has an address
wait_for_name() {
  command -v getent >/dev/null || return 0
  seconds=0
  until getent hosts "$1" >/dev/null; do
    [ $seconds -lt $MOST_SECONDS_FOR_A_NAME ] || { say "$1 has no address" && return 0; }
    sleep 1
    seconds=$((seconds + 1))
  done
}

# torchrun_it COMMAND...: a command that is torchrun itself reads the same from PET_*. Before 2.0, torchrun knows its
# options with underscores only; later ones take both.
torchrun_it() {
  export PET_NODE_RANK="$NODE_RANK"
  case ${1##*/} in torchrun) exec "$@" ;; esac
  case $1 in -* | *.py) ;; *) set -- --no_python "$@" ;; esac
  set -- --nnodes "$PET_NNODES" --nproc_per_node "$PET_NPROC_PER_NODE" --node_rank "$NODE_RANK" \
    --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" "$@"
  if command -v torchrun >/dev/null; then
    exec torchrun "$@"
  fi
  exec python3 -m torch.distributed.run "$@"
}

# ranks COMMAND...: LOCAL_WORLD_SIZE processes. If one fails, the others are ended, and its exit code is that of all.
ranks() {
  BERTH_RANKS=$(mktemp -d) || exit 126
  berth_pids='' berth_ends='' berth_number=0
  trap end_ranks TERM INT HUP USR1
  while [ $berth_number -lt "$LOCAL_WORLD_SIZE" ] && [ -z "$berth_ends" ]; do
    rank $berth_number "$@" &
    berth_pids="$berth_pids $berth_number:$!"
    berth_number=$((berth_number + 1))
  done
  [ -z "$berth_ends" ] || end_ranks # it came before the last was noted
  for berth_one in $berth_pids; do
    wait_for "${berth_one#*:}"
  done
  read -r berth_code 2>/dev/null <"$BERTH_RANKS/code" || berth_code=0
  [ -n "$berth_pids" ] || berth_code=143 # it was told to end before the first process
  rm -rf "$BERTH_RANKS"
  exit "$berth_code"
}

end_ranks() {
  berth_ends=yes berth_caught=yes
  for berth_other in $berth_pids; do
    end_when_heard "$BERTH_RANKS/${berth_other%%:*}" "${berth_other#*:}"
  done
}

# rank NUMBER COMMAND...: one process, which hears what this shell is told. The first that fails leaves its exit code.
rank() {
  LOCAL_RANK=$1 RANK=$((NODE_RANK * LOCAL_WORLD_SIZE + $1))
  export LOCAL_RANK RANK
  shift
  berth_pid='' berth_ends=''
  trap end_rank TERM
  : >"$BERTH_RANKS/$LOCAL_RANK"
  (trap - TERM INT HUP USR1 && : >"$BERTH_RANKS/$LOCAL_RANK.runs" && exec "$@") &
  berth_pid=$!
  [ -z "$berth_ends" ] || end_rank # it came before the process was noted
  wait_for "$berth_pid"
  [ "$berth_code" -eq 0 ] && exit 0
  if (set -C && echo "$berth_code" >"$BERTH_RANKS/code") 2>/dev/null; then
    kill -USR1 $$
  fi
  exit 0
}

end_rank() {
  berth_ends=yes berth_caught=yes
  [ -n "$berth_pid" ] || return 0
  end_when_heard "$BERTH_RANKS/$LOCAL_RANK.runs" "$berth_pid"
  # No child of this shell: bash, asked again for a child that it has collected, waits for its others
  (trap - TERM; (sleep $SECONDS_TO_END && kill -KILL "$berth_pid") &) >/dev/null 2>&1
}

# end_when_heard FILE PID: a process makes the file when it hears. A signal that comes in the moment between its fork and
# its exec is lost. A second signal may come in the midst of this: only arguments are its own.
end_when_heard() {
  berth_tries=0
  while [ ! -e "$1" ] && [ $berth_tries -lt 10 ]; do
    sleep 1
    berth_tries=$((berth_tries + 1))
  done
  kill -TERM "$2" 2>/dev/null
}

# wait_for PID: until it has ended, whatever this shell hears meanwhile; its exit code is in berth_code
wait_for() {
  berth_code=''
  while :; do
    berth_caught=''
    wait "$1" 2>/dev/null # says nothing of how it ended
    berth_now=$?
    [ -n "$berth_code" ] && case $berth_now in 127 | -1) return ;; esac # its code was collected before
    berth_code=$berth_now
    [ -n "$berth_caught" ] || return 0
  done
}
