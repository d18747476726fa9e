#!/bin/sh
# Each file below things/ is an instance. The export lists a property that the schema does not know.
instance() { printf '{"path":"%s","text":"%s"}\n' "$1" "$(cat "$1" 2>/dev/null)"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) echo '{"path":"things/a","text":"hello","size":5}' ;;
esac
