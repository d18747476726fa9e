"""What adapters of other tools have in common: the Python that a tool is installed for, what root trusts, and values that are secret."""
import importlib.util
import json
import os
import shutil
import sys

from stead_resource import secret


def package(name):
    """The folder of a package of this Python, or nothing."""
    found = importlib.util.find_spec(name)
    return found.submodule_search_locations[0] if found and found.submodule_search_locations else None


def judge(path):
    """Why root does not use a file or folder: a part of its path can be changed by others. Nothing if none can."""
    if os.geteuid() != 0:
        return None
    place = path = os.path.realpath(path)
    while True:
        about = os.stat(place)
        is_sticky = about.st_mode & 0o1000 and place != path
        if about.st_uid != 0 or about.st_mode & 0o022 and not is_sticky:
            return f"'{path}' is not used as root: '{place}' can be changed by others"
        if place == "/":
            return None
        place = os.path.dirname(place)


def go_on(script, name):
    """Goes on in the Python that a tool is installed for: this one, or that of the program of its name, which its first line says."""
    os.environ.pop("PYTHONPATH", None)
    if package(name) is None:
        program = shutil.which(name)
        if program is None:
            fail(f"{name} is not installed: neither this Python nor a program '{name}' in PATH has it")
        with open(program, "rb") as file:
            first = file.readline(512).decode("utf-8", "replace").strip()
        interpreter = first[2:].strip().split(" ")[0] if first.startswith("#!") else ""
        if not os.path.isabs(interpreter) or os.environ.get("STEAD_PYTHON") == interpreter:
            fail(f"'{program}' does not say which Python {name} is installed for")
        for path in (program, interpreter):
            refuse(judge(path))
        os.environ["STEAD_PYTHON"] = interpreter
        isolated = ["-I"] if os.geteuid() == 0 else []
        os.execv(interpreter, [interpreter, *isolated, script, *sys.argv[1:]])
    os.environ.pop("STEAD_PYTHON", None)
    for path in [package(name), *filter(os.path.exists, sys.path)]:
        refuse(judge(path))


def refuse(why):
    if why:
        fail(why)


def fail(message):
    print(json.dumps({"error": message}), file=sys.stderr)
    sys.exit(1)


def warn(message):
    print(json.dumps({"warn": message}), file=sys.stderr)


def holds_secret(value):
    """Whether a property is a secret, or has one in it."""
    if isinstance(value, dict):
        return secret(value) is not value or any(map(holds_secret, value.values()))
    return isinstance(value, list) and any(map(holds_secret, value))


def plain(value):
    """A property with its secrets in the clear."""
    if isinstance(value, dict):
        inner = secret(value)
        return inner if inner is not value else {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def plain_json(value):
    """What a tool returns, without types of its own."""
    return json.loads(json.dumps(value, default=str, skipkeys=True))
