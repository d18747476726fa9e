#!/bin/sh
# Gives parameters only.
cat > /dev/null
echo '{"parameters":{"text":"hello"}}'
