#!/bin/sh
# Reports a property that can only be written.
case $1 in
    get) printf '{"path":"%s","password":"hunter2222"}\n' "$path" ;;
    set) ;;
esac
