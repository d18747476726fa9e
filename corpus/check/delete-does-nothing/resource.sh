#!/bin/sh
# Leaves everything where it is.
case $1 in
    get) [ -e "$path" ] && there=true || there=false; printf '{"path":"%s","_exist":%s}\n' "$path" "$there" ;;
    delete) ;;
esac
