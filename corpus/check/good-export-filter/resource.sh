#!/bin/sh
# Instances with names; only what is asked for is listed.
instance() { printf '{"path":"%s","text":"%s"%s}\n' "$1" "$(cat "$1" 2>/dev/null)" "$2"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export)
        [ -n "$path" ] || { echo "say which, in 'path'" >&2; exit 1; }
        instance "$path" ",\"_name\":\"the first\""
        instance things/b ",\"_name\":\"the second\"" ;;
esac
