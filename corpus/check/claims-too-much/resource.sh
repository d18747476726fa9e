#!/bin/sh
# One line of text in the file $path. What $other names is not touched.
state() { printf '{"path":"%s","other":"%s","text":"%s"%s}\n' "$path" "$other" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
