#!/bin/sh
# Keeps a password, and lists it.
case $1 in
    get) cat > /dev/null; echo '{"path":"made"}' ;;
    set) sed 's/.*secureString":"\([^"]*\)".*/\1/' > made ;;
    export) printf '{"path":"made","password":"%s"}\n' "$(cat made)" ;;
esac
