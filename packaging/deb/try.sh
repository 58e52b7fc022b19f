#!/bin/sh
# Installs the package as a user does, tries what it brings, and removes it. As root, in a root that is thrown
# away: `cargo xtask packages --check` lays one over this machine's.
#
#   try.sh haulier.deb
set -eu
deb=$1

say() { printf 'try: %s\n' "$*"; }
fail() {
  say "FAILED: $*" >&2
  exit 1
}
# Waits for a command to succeed, some seconds at most.
until_ok() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || return 1
    sleep 0.05
  done
}

# Everything that has the name; the machine may have something of its own.
named() {
  find /etc /usr /var/lib -xdev -name '*haulier*' | sort
}
before=$(named)

# Images for containers leave manual pages out.
rm -f /etc/dpkg/dpkg.cfg.d/docker /etc/dpkg/dpkg.cfg.d/excludes
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends "$deb" >/dev/null
say "installed: $(haulier --version)"
haulier --help | grep -q serve || fail 'it does not run'

gzip -dc /usr/share/man/man1/haulier.1.gz | grep -q '^\.SH NAME' || fail 'no manual page'
gzip -dc /usr/share/man/man1/haulier-serve.1.gz | grep -q secret || fail 'no manual page of serve'
if command -v man >/dev/null; then
  man haulier 2>/dev/null | grep -q NAME || fail '`man haulier` shows nothing'
  say '`man haulier` shows its page'
fi

completed=$(bash -c '
  . /usr/share/bash-completion/completions/haulier
  COMP_WORDS=(haulier se) COMP_CWORD=1
  _haulier haulier se haulier
  echo "${COMPREPLY[@]}"')
case $completed in *send*serve* | *serve*send*) ;; *) fail "bash completes se to: $completed" ;; esac
say "bash completes se to: $completed"
if command -v zsh >/dev/null; then
  zsh -n /usr/share/zsh/vendor-completions/_haulier || fail 'zsh does not read its completion'
fi
if command -v fish >/dev/null; then
  fish -c 'complete -C "haulier se"' | grep -q ^serve || fail 'fish does not complete'
  say 'fish completes se'
fi

# The unit, as far as it can be tried without systemd as the first process.
unit=/usr/lib/systemd/system/haulier.service
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify "$unit" || fail 'the unit is not right'
  systemd-analyze security --offline=yes --threshold=20 "$unit" | tail -n 1
fi
[ ! -e /etc/systemd/system/multi-user.target.wants/haulier.service ] || fail 'it was enabled unasked'

# What the unit runs, as a user who has nothing but its two directories; systemd makes them.
state=/var/lib/private/haulier
run=/run/haulier
install -d -m 700 -o nobody -g nogroup "$state" "$run"
ln -sfn private/haulier /var/lib/haulier
install -d -o nobody -g nogroup "$state/files"
echo 'a world' >"$state/files/world.bin"
chmod 644 "$state/files/world.bin"
chmod 755 /var/lib/private
command=$(sed -n 's/^ExecStart=//p' "$unit")
start() {
  (
    set -a
    . /etc/default/haulier
    exec env HAULIER_BIND=127.0.0.1:0 STATE_DIRECTORY=/var/lib/haulier RUNTIME_DIRECTORY="$run" \
      setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all "$command"
  ) &
  service=$!
  until_ok test -s "$run/ticket" || fail 'the service printed no ticket'
}
stop() {
  kill -TERM "$service"
  wait "$service" || fail "the service ended with $? when it was told to stop"
}
start
[ "$(stat -c %a "$run/ticket")" = 600 ] || fail 'others can read the ticket'
(cd /tmp && haulier fetch --quiet --ticket-file "$run/ticket" -o fetched) || fail 'nothing was fetched'
grep -rq 'a world' /tmp/fetched || fail "another file was fetched: $(find /tmp/fetched)"
stop
rm "$run/ticket"
key=$(cksum <"$state/ticket.secret")
start
stop
[ "$key" = "$(cksum <"$state/ticket.secret")" ] || fail 'a second start has another key'
say 'the service starts, serves, stops, and keeps its keys'

# Removed, the settings and the keys are kept; purged, nothing is.
dpkg --remove haulier >/dev/null
[ -e /etc/default/haulier ] && [ -e "$state/ticket.secret" ] || fail 'removing took the settings'
[ ! -e /usr/bin/haulier ] || fail 'the program is still there'
rm -rf "$run" # systemd's
dpkg --purge haulier >/dev/null
[ "$before" = "$(named)" ] || fail "purging left more than there was: $(named)"
say 'purged: nothing is left'
