#!/usr/bin/env python3
"""A file with a text, or none. The desired state comes as JSON on standard input."""
import json
import pathlib
import sys


def actual(path):
    if not path.exists():
        return {"path": str(path), "_exist": False}
    return {"path": str(path), "text": path.read_text(), "_exist": True}


def wanted(desired, state):
    if not desired.get("_exist", True):
        return {"path": state["path"], "_exist": False}
    return {**state, "text": desired.get("text", state.get("text", "")), "_exist": True}


desired = json.load(sys.stdin)
path = pathlib.Path(desired["path"])
try:
    state = actual(path)
    goal = wanted(desired, state)
    if sys.argv[1] == "test":
        state["_inDesiredState"] = state == goal
    elif sys.argv[1] == "set":
        if "--what-if" not in sys.argv and state != goal:
            path.write_text(goal["text"]) if goal["_exist"] else path.unlink()
        state = goal
except OSError as error:
    sys.exit(str(error))  # The message goes to standard error, the exit code is 1.
print(json.dumps(state))
