#!/usr/bin/env python3
"""A file with a text, or none."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stead_resource import Failed, Resource, run  # noqa: E402


class Note(Resource):
    def get(self, desired, call):
        try:
            with open(call.path(desired["path"])) as note:
                return {"path": desired["path"], "text": note.read(), "_exist": True}
        except FileNotFoundError:
            return {"path": desired["path"], "_exist": False}
        except (OSError, UnicodeError) as error:
            raise Failed(f"the note cannot be read: {error}", id="unreadable")

    def set(self, desired, call):
        path = call.path(desired["path"])
        if not desired.get("_exist", True):
            call.log("info", "the note goes")
            if os.path.exists(path):
                os.remove(path)
        elif "text" in desired or not os.path.exists(path):
            with open(path, "w") as note:
                note.write(desired.get("text", ""))


if __name__ == "__main__":
    run(Note())
