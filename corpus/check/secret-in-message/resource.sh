#!/bin/sh
# Keeps the password to itself, but tells everyone what it works with.
case $1 in
    get) cat >&2; echo '{"path":"made"}' ;;
    set) cat > /dev/null ;;
esac
