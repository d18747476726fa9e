"""What adapters of other tools have in common: what a tool is handed, values that are secret, what a tool returns, and the end."""
import json
import os
import sys

from stead_resource import Failed, secret


class Refused(Failed):
    """Root does not use a file."""


def warn(message):
    print(json.dumps({"warn": message}), file=sys.stderr)


def holds_secret(value):
    """Whether a property is a secret, or has one in it."""
    if isinstance(value, dict):
        return secret(value) is not value or any(map(holds_secret, value.values()))
    return isinstance(value, list) and any(map(holds_secret, value))


def stated(desired):
    """The properties without secrets, as they are stated."""
    return {name: value for name, value in desired.items() if not holds_secret(value)}


def handed(desired, *but):
    """What a tool is handed: the properties with their secrets in the clear, but for some, and without those that are for stead."""
    return {name: plain(value) for name, value in desired.items() if name not in but and not name.startswith("_")}


def end(folder):
    """Ends the process at once: taking apart what a tool has loaded takes longer than most calls, and than a program is given to end."""
    folder.cleanup()
    os._exit(0)


def plain(value):
    """A property with its secrets in the clear."""
    if isinstance(value, dict):
        inner = secret(value)
        return inner if inner is not value else {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def plain_json(value):
    """What a tool returns, without types of its own."""
    return json.loads(json.dumps(value, default=str, skipkeys=True))
