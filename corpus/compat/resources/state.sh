#!/bin/sh
# Is always as desired: the state that comes in goes out.
cat
echo
