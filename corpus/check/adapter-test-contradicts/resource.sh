#!/bin/sh
# Says of everything that it is in the desired state.
[ "$1" = list ] || document=$(cat)
of() { printf '%s' "$document" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
path=$(of path) text=$(of text)
state() {
    printf '{"result":[{"name":"%s","type":"Adapted/Line","properties":{"path":"%s","text":"%s"%s}}]}\n' \
        "$(of name)" "$path" "$(cat "$path" 2>/dev/null)" "$1"
}
case $1 in
    list) echo '{"type":"Adapted/Line","kind":"resource","version":"1.0.0","capabilities":["get","set","test"],"requireAdapter":"Check/AdapterTestContradicts","schema":{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string"},"text":{"type":"string"},"_inDesiredState":{"type":"boolean"}}}}' ;;
    get) state ;;
    set) printf '%s' "$text" > "$path" && state ;;
    test) state ',"_inDesiredState":true' ;;
esac
