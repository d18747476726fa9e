#!/bin/sh
# Lists instances of a type that there is not.
echo '{"type":"Check/Nobody","name":"one","properties":{}}'
