#!/bin/sh
# One line of text in the file $path.
state() { printf '{"path":"%s","text":"%s","size":'"$(wc -c < "$path" 2>/dev/null || echo 0)"'%s}\n' "$path" "$([ -s "$path" ] && echo "$text")" "$1"; }
case $1 in
    get) state ;;
    set) printf '%s' "$text" >> "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
