#!/bin/sh
# Each file below things/ is an instance. 
instance() { printf '{"path":"%s","text":"%s"}\n' "$1" "$(cat "$1" 2>/dev/null)"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) for each in things/*; do instance "$each"; done ;;
esac
