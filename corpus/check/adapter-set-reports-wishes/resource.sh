#!/bin/sh
# Reports what was to be instead of what is.
state() { printf '{"path":"%s","text":"%s"%s}\n' "$path" "$(cat "$path" 2>/dev/null)" "$1"; }
case $1 in
    list) echo '{"type":"Adapted/Line","kind":"resource","version":"1.0.0","capabilities":["get","set","test"],"requireAdapter":"Check/AdapterSetReportsWishes","schema":{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string"},"text":{"type":"string"},"_inDesiredState":{"type":"boolean"}}}}' ;;
    get) state ;;
    set) printf '%s' "$text" > "$path"; printf '{"path":"%s","text":"wished"}\n' "$path" ;;
    test) [ "$(cat "$path" 2>/dev/null)" = "$text" ] && good=true || good=false; state ",\"_inDesiredState\":$good" ;;
esac
