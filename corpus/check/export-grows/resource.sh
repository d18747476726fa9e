#!/bin/sh
# Each file below things/ is an instance. The export lists one more each time.
instance() { printf '{"path":"%s","text":"%s"}\n' "$1" "$(cat "$1" 2>/dev/null)"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) printf x >> asked; mkdir -p things; touch "things/$(wc -c < asked)"; for each in things/*; do instance "$each"; done ;;
esac
