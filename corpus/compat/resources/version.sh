#!/bin/sh
# Tells its version, which is in the manifest.
printf '{"version":"%s"}\n' "$1"
