#!/bin/sh
# Gives what is not a document.
cat > /dev/null
echo '{"configuration":{"resourcez":[]},"parameters":"text=hello"}'
