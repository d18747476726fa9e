#!/bin/sh
# The export lists what test does not find in its desired state.
instance() { printf '{"path":"%s","text":"%s"%s}\n' "$1" "$(cat "$1" 2>/dev/null)" "$2"; }
case $1 in
    get) instance "$path" ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; instance "$path" ",\"_inDesiredState\":$good" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) for each in things/*; do printf '{"path":"%s","text":"old"}\n' "$each"; done ;;
esac
