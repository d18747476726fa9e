#!/bin/sh
# What it lists has no type, and does what cannot be done.
state() { printf '{"path":"%s","text":"%s"%s}\n' "$path" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    list) echo '{"kind":"thing","capabilities":["fly"]}' ;;
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
