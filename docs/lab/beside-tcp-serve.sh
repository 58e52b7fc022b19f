#!/bin/sh
# The lab's TCP peer and haulier's serve the same bytes side by side: `beside-tcp-serve.sh BYTES`.
labpeer tcp serve --cc cubic --bytes "$1" >/dev/null 2>&1 &
sleep 0.5
exec haulier-lab bench peer serve --bytes "$1"
