#!/bin/sh
# Lists a password that nobody handed to it, in its wrapping.
case $1 in
    get) cat > /dev/null; echo '{"path":"made"}' ;;
    set) cat > /dev/null ;;
    export) echo '{"path":"made","password":{"secureString":"from before"}}' ;;
esac
