#!/bin/sh
# Each file below things/ is an instance. The export has another order each time.
instance() { printf '{"path":"%s","text":"%s"}\n' "$1" "$(cat "$1" 2>/dev/null)"; }
case $1 in
    get) instance "$path" ;;
    set) mkdir -p things && printf '%s' "$text" > "$path" ;;
    export) printf x >> asked; [ "$(($(wc -c < asked) % 2))" = 0 ] && order=-r; printf 'things/a\nthings/b\n' | sort $order | while read -r each; do instance "$each"; done ;;
esac
