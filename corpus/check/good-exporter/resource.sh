#!/bin/sh
# Lists what another resource is there to report.
echo '{"type":"Microsoft.DSC.Debug/Echo","name":"one","properties":{"output":"a"}}'
echo '{"type":"Microsoft.DSC.Debug/Echo","name":"two","properties":{"output":"b"}}'
