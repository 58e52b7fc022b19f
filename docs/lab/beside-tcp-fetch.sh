#!/bin/sh
# Fetches from both at once; prints TCP's line, then haulier's: `beside-tcp-fetch.sh BYTES`.
labpeer tcp fetch --cc cubic --bytes "$1" >tcp.json 2>/dev/null &
tcp=$!
ours=$(haulier-lab bench peer fetch --bytes "$1" --credentials token | tail -n 1)
wait "$tcp"
tail -n 1 tcp.json
echo "$ours"
