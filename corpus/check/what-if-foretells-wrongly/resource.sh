#!/bin/sh
# Foretells another text than it writes.
state() { printf '{"path":"%s","text":"%s"}\n' "$path" "$(cat "$path" 2>/dev/null)"; }
case $1 in
    get) state ;;
    set) [ "$2" = --what-if ] && exec printf '{"path":"%s","text":"something"}\n' "$path"
        printf '%s' "$text" > "$path" && state ;;
esac
