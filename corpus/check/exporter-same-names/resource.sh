#!/bin/sh
# Lists two instances of one name.
echo '{"type":"Microsoft.DSC.Debug/Echo","name":"one","properties":{"output":"a"}}'
echo '{"type":"Microsoft.DSC.Debug/Echo","name":"one","properties":{"output":"b"}}'
