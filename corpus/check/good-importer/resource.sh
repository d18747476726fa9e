#!/bin/sh
# Gives a document and the parameter for it.
cat > /dev/null
echo '{"configuration":{"$schema":"https://aka.ms/dsc/schemas/v3/bundled/config/document.json","resources":[{"name":"a","type":"Microsoft.DSC.Debug/Echo","properties":{"output":"[parameters('\''text'\'')]"}}],"parameters":{"text":{"type":"string"}}},"parameters":{"text":"hello"}}'
