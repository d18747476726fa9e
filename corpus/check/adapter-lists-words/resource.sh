#!/bin/sh
# Lists names only.
state() { printf '{"path":"%s","text":"%s"%s}\n' "$path" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    list) echo Adapted/Line ;;
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
