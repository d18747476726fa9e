#!/bin/sh
# Prints the document that a file holds in Base64: --file PATH.
base64 --decode "$2"
