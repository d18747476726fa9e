#!/bin/sh
# Takes its time. The properties come as environment variables of their names.
# shellcheck disable=SC2154
sleep "$seconds"
printf '{"seconds":%d}\n' "$seconds"
