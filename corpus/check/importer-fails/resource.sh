#!/bin/sh
# Cannot resolve anything.
echo 'there is no such list' >&2
exit 1
