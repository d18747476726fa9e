#!/bin/sh
# Tells where manifests are, one a line. Paths have to be absolute.
for manifest in "$PWD"/discovered/*.dsc.resource.json; do
    printf '{"manifestPath":"%s"}\n' "$manifest"
done
