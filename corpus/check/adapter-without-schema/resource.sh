#!/bin/sh
# What it lists has no schema.
state() { printf '{"path":"%s","text":"%s"%s}\n' "$path" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    list) echo '{"type":"Adapted/Line","version":"1.0.0","capabilities":["get"],"requireAdapter":"Check/AdapterWithoutSchema"}' ;;
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
