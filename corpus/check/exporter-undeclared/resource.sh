#!/bin/sh
# Lists what the resource would refuse.
echo '{"type":"Microsoft.DSC.Debug/Echo","name":"one","properties":{"outputs":"a"}}'
