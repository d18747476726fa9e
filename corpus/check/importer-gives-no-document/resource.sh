#!/bin/sh
# Gives what is no document.
cat > /dev/null
echo '{"configuration":{"resourcez":[]},"parameters":"text=hello"}'
