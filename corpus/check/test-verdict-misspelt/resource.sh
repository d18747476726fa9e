#!/bin/sh
# One line of text in the file $path.
state() { printf '{"path":"%s","text":"%s"%s}\n' "$path" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"inDesiredState\":$good" ;;
esac
