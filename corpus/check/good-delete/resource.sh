#!/bin/sh
# A file that may be gone.
case $1 in
    get) [ -e "$path" ] && there=true || there=false; printf '{"path":"%s","_exist":%s}\n' "$path" "$there" ;;
    delete) [ "$2" = --what-if ] && echo '{"_metadata":{"whatIf":["it would go"]}}' || rm -f "$path" ;;
esac
