#!/bin/sh
# Each file below things/ is an instance, and judged by itself.
instance() { printf '{"path":"%s","text":"%s"%s}\n' "$1" "$(cat "$1" 2>/dev/null)" "$2"; }
case $1 in
    get) instance "$path" ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; instance "$path" ",\"_inDesiredState\":$good" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) for each in things/*; do instance "$each"; done ;;
esac
