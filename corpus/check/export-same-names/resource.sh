#!/bin/sh
# Each file below things/ is an instance. All that is exported has one name.
instance() { printf '{"path":"%s","text":"%s"}\n' "$1" "$(cat "$1" 2>/dev/null)"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) echo '{"_name":"one","path":"things/a","text":"hello"}'; echo '{"_name":"one","path":"things/b"}' ;;
esac
