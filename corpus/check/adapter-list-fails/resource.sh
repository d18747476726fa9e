#!/bin/sh
# Cannot list anything.
state() { printf '{"path":"%s","text":"%s"%s}\n' "$path" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    list) echo "there is no list" >&2; exit 1 ;;
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
