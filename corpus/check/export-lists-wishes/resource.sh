#!/bin/sh
# Each file below things/ is an instance. The export lists texts in capitals.
instance() { printf '{"path":"%s","text":"%s"}\n' "$1" "$(cat "$1" 2>/dev/null)"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) for each in things/*; do instance "$each" | tr a-z A-Z | sed 's/PATH/path/; s/TEXT/text/; s/THINGS/things/; s,/A",/a",'; done ;;
esac
