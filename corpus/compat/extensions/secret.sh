#!/bin/sh
# Prints a secret as one line, or nothing when there is none: NUMBER --name NAME [--vault VAULT].
case "$1:$3:$5" in
    1:MySecret: | 1:MySecret:VaultA) echo Hello ;;
    2:DifferentSecret: | 2:MySecret:VaultB) echo World ;;
    *:DuplicateSecret:) echo "Duplicate$1" ;;
    *:DuplicateSame:) echo SameSecret ;;
    1:MultiLine:) printf 'first\nsecond\n' ;;
esac
