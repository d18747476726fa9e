#!/bin/sh
# Lists properties alone, of nobody knows what.
echo '{"output":"a"}'
