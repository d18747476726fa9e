#!/usr/bin/env python3
"""A file with a text, or none."""
import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stead_resource import Failed, Resource, run  # noqa: E402


class Note(Resource):
    def get(self, desired, call):
        path = pathlib.Path(call.path(desired["path"]))
        if not path.exists():
            return {"path": desired["path"], "_exist": False}
        try:
            return {"path": desired["path"], "text": path.read_text(), "_exist": True}
        except (OSError, UnicodeError) as error:
            raise Failed(f"the note cannot be read: {error}", id="unreadable")

    def set(self, desired, call):
        path = pathlib.Path(call.path(desired["path"]))
        if not desired.get("_exist", True):
            call.log("info", "the note goes")
            path.unlink(missing_ok=True)
        elif "text" in desired or not path.exists():
            path.write_text(desired.get("text", ""))


if __name__ == "__main__":
    run(Note())
