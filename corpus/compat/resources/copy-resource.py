#!/usr/bin/env python3
"""Writes a manifest again under the name of another type, so that a run can discover it while it is under way."""
import json
import pathlib
import sys

desired = json.load(sys.stdin)
source = pathlib.Path(desired["sourceFile"])
manifest = json.loads(source.read_text(encoding="utf-8"))
manifest["type"] = desired["typeName"]
name = desired["typeName"].replace("/", ".").lower()
source.with_name(f"{name}.dsc.resource.json").write_text(json.dumps(manifest), encoding="utf-8")
print(json.dumps(desired))
