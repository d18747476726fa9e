#!/bin/sh
# Says what it cannot work with.
sed 's/.*secureString":"\([^"]*\)".*/cannot log in with \1/' >&2
exit 1
