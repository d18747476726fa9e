#!/bin/sh
# Checks the Ruby side of stead: style, unit tests, and real runs of Puppet. STEAD_TEST_ENGINE names an engine to test with,
# beside the fake one. What is not installed is skipped, with a line that says so.
set -eu
cd "$(dirname "$0")/.."

for program in puppet rspec; do
    if ! command -v "$program" >/dev/null; then
        echo "skipped: tests of the Puppet modules; $program is not installed"
        exit 0
    fi
done
if command -v rubocop >/dev/null; then
    rubocop
else
    echo "skipped: style of the Ruby files; rubocop is not installed"
fi
(cd steadlib && rspec)
# Each by itself: what is set up around the examples of one is not meant for another.
for spec in ./tests/*_spec.rb; do
    (cd tests && rspec "./${spec##*/}")
done
