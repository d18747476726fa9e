#!/bin/sh
# Carries out what has a manifest of its own; lists nothing.
state() { printf '{"path":"%s","text":"%s"}\n' "$path" "$(cat "$path" 2>/dev/null)"; }
case $1 in
    get) state ;;
    set) printf '%s' "$text" > "$path" ;;
esac
