#!/bin/sh
# Does not look at --what-if.
case $1 in
    get) [ -e "$path" ] && there=true || there=false; printf '{"path":"%s","_exist":%s}\n' "$path" "$there" ;;
    delete) rm -f "$path"; echo '{"_metadata":{"whatIf":["it would go"]}}' ;;
esac
