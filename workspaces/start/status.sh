#!/bin/sh
# Says, as one line of JSON, what runs here for a person: terminals and SSH sessions with a program in the foreground, and
# the age of the newest keep-alive. Text on its standard input is first written into every open terminal.
# Counts only, no names: Berth keeps them in events that others can read. Needs a POSIX shell and /proc.

set -f
run=${JUPYTER_RUNTIME_DIR%/*}
sshd= text=
[ ! -r "$run/ssh" ] || read -r sshd <"$run/ssh"
while read -r line || [ -n "$line" ]; do
  text="$text
$line"
done
set +f

# What waits for a person: shells, and programs that only show other terminals
waits() {
  case $1 in
  sh | bash | dash | ash | busybox | zsh | fish | ksh* | csh | tcsh | tmux* | screen | SCREEN) ;;
  *) return 1 ;;
  esac
}

# Whether process $1 is below process $2, by the parents as they were read
below() {
  at=$1
  while [ "${at:-0}" -gt 1 ]; do
    [ "$at" != "$2" ] || return 0
    eval "at=\${parent_$at:-0}"
  done
  return 1
}

all= leaders=
for stat in /proc/[0-9]*/stat; do
  read -r line <"$stat" || continue
  pid=${stat#/proc/} pid=${pid%/stat}
  name=${line#*\(} name=${name%\)*}
  set -f
  set -- ${line##*\) }
  set +f
  case $# in [0-5]) continue ;; esac
  case $1$2$3$4$5$6 in Z* | *[!0-9A-Za-z-]*) continue ;; esac
  case $2$3$4$5 in *[!0-9-]*) continue ;; esac
  eval "parent_$pid=$2 group_$pid=$3 tty_$pid=$5 front_$pid=$6 name_$pid=\$name"
  all="$all $pid"
  if [ "$5" != 0 ] && [ "$4" = "$pid" ]; then leaders="$leaders $pid"; fi
done 2>/dev/null

if [ -n "$text" ]; then
  for pid in $leaders; do
    # Beside: a terminal that is stopped by Ctrl-S takes no text
    (printf '\r\n%s\r\n' "$text" >"/proc/$pid/fd/0") 2>/dev/null &
  done
fi

terminals=0 ssh=0
for leader in $leaders; do
  eval "front=\$front_$leader tty=\$tty_$leader"
  works=
  for pid in $all; do
    eval "group=\$group_$pid its=\$tty_$pid name=\$name_$pid"
    if [ "$group" = "$front" ] && [ "$its" = "$tty" ] && ! waits "$name"; then works=1 && break; fi
  done
  [ -n "$works" ] || continue
  if [ -n "$sshd" ] && below "$leader" "$sshd"; then ssh=$((ssh + 1)); else terminals=$((terminals + 1)); fi
done

# Sessions without a terminal (ssh host program): what is below the SSH server, other than the server's own parts, shells
# that wait, this script, and an editor's server, which stays as long as its window is open. One is enough to know.
for pid in $all; do
  [ $ssh -eq 0 ] || break
  eval "tty=\$tty_$pid name=\$name_$pid parent=\$parent_$pid"
  if [ -z "$sshd" ] || [ "$tty" != 0 ] || [ "$pid" = "$sshd" ] || ! below "$pid" "$sshd"; then continue; fi
  case $name in sshd* | sftp-server | sleep) continue ;; esac
  if waits "$name" || below "$pid" $$; then continue; fi
  at=$pid
  while [ "${at:-0}" -gt 1 ] && [ "$at" != "$sshd" ]; do
    case $(readlink "/proc/$at/exe") in */.vscode*-server/* | */.cursor-server/* | */.windsurf-server/*) continue 2 ;; esac
    eval "at=\${parent_$at:-0}"
  done
  ssh=$((ssh + 1))
done

# Its age and not its time: clocks differ. Of the future: kept until then.
age=null now=$(date +%s)
for file in "$run/keep-alive" "$HOME/.berth-keep-alive"; do
  [ -e "$file" ] || continue
  at=$(stat -c %Y "$file" 2>/dev/null || date -r "$file" +%s) || continue
  if [ "$age" = null ] || [ $((now - at)) -lt "$age" ]; then age=$((now - at)); fi
done

printf '{"version": 1, "terminals": %d, "ssh": %d, "keep_alive_seconds": %s}\n' $terminals $ssh "$age"
