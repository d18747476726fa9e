#!/bin/sh
# Tells the level of the messages that it is asked for.
printf '{"level":"%s"}\n' "$DSC_TRACE_LEVEL"
