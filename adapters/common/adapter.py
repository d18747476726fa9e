"""What adapters of other tools have in common: the Python that a tool is installed for, what root trusts, and values that are secret."""
import importlib.util
import json
import os
import pwd
import re
import shutil
import site
import stat
import sys

from stead_resource import Failed, secret

# How many links a path may lead through, as on Linux.
MOST_LINKS = 40


def package(name):
    """The folder of a package of this Python, or nothing."""
    found = importlib.util.find_spec(name)
    return found.submodule_search_locations[0] if found and found.submodule_search_locations else None


class Refused(Failed):
    """Root does not use a file."""


def judge(path):
    """Why root does not use a file or folder: a part of its path, or of where its links lead, can be changed by others. Nothing if none can."""
    place = changeable(path) if os.geteuid() == 0 else None
    return place and f"'{path}' is not used as root: '{place}' can be changed by others"


def changeable(path):
    """The part of a path, or of where its links lead, that others than root can change, or nothing."""
    place, rest, links = "/", parts(os.path.join(os.getcwd(), path)), 0
    while True:
        about = os.lstat(place)
        is_link = stat.S_ISLNK(about.st_mode)
        # In a folder such as /tmp nobody replaces what is another's; whose it is is looked at next.
        is_kept = is_link or about.st_mode & stat.S_ISVTX and rest
        if about.st_uid != 0 or about.st_mode & 0o022 and not is_kept or links > MOST_LINKS:
            return place
        if is_link:
            target, links = os.readlink(place), links + 1
            place, rest = "/" if os.path.isabs(target) else os.path.dirname(place), rest + parts(target)
        elif rest:
            part = rest.pop()
            place = os.path.dirname(place) if part == ".." else os.path.join(place, part)
        else:
            return None


def parts(path):
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def judge_code(event, arguments, judged=set()):
    """Judges a file of Python, and a library, before its code runs, wherever Python found it: a hook of `sys.addaudithook`. What nobody
    else could change then is not judged again, also not in copies of this process: only root could have let others in."""
    if event == "exec":
        path = getattr(arguments[0], "co_filename", None)
    elif event == "import":
        path = arguments[1]
    else:
        return
    if isinstance(path, str) and os.path.isabs(path) and path not in judged:
        kept, judged_path = importlib.util.cache_from_source(path), path
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        for each in filter(os.path.lexists, (path, kept)):
            why = judge(each)
            if why:
                raise Refused(why)
        judged.add(judged_path)


def judged(add):
    """`addsitedir` and `addpackage` of `site`, which read and run files `.pth`, for what root trusts."""
    def add_judged(*arguments, **named):
        path = os.path.join(*arguments[:1 if add.__name__ == "addsitedir" else 2])
        if os.path.lexists(path):
            refuse(judge(path))
        return add(*arguments, **named)
    return add_judged


def enter():
    """Adds the folders of packages to those that Python, which was started without them, loads from."""
    os.environ.pop("PYTHONPATH", None)
    if os.geteuid() == 0:
        for name in [name for name in os.environ if name.startswith("PYTHON")]:
            del os.environ[name]
        if judge(os.path.expanduser("~")):
            os.environ["HOME"] = pwd.getpwuid(0).pw_dir
        sys.addaudithook(judge_code)
        site.ENABLE_USER_SITE = False
        site.addsitedir, site.addpackage = judged(site.addsitedir), judged(site.addpackage)
    if sys.flags.no_site:
        site.main()


def go_on(script, name):
    """Goes on in the Python that a tool is installed for: this one, or that of the program of its name, which its first line says."""
    enter()
    if package(name) is None:
        program = shutil.which(name)
        if program is None:
            fail(f"{name} is not installed: neither this Python nor a program '{name}' in PATH has it")
        with open(program, "rb") as file:
            first = file.readline(512).decode("utf-8", "replace").strip()
        interpreter = first[2:].strip().split(" ")[0] if first.startswith("#!") else ""
        is_python = re.fullmatch(r"/.*/(python|pypy)[\d.]*", interpreter)
        if not is_python or not os.path.exists(interpreter) or os.environ.get("STEAD_PYTHON") == interpreter:
            fail(f"'{program}' does not say which Python {name} is installed for")
        # Python reads where its own library is before it runs anything.
        folder = os.path.dirname(interpreter)
        settings = [os.path.join(place, "pyvenv.cfg") for place in (folder, os.path.dirname(folder))]
        for path in (program, interpreter, *filter(os.path.lexists, settings)):
            refuse(judge(path))
        os.environ["STEAD_PYTHON"] = interpreter
        os.execv(interpreter, [interpreter, "-I" if os.geteuid() == 0 else "-E", "-S", script, *sys.argv[1:]])
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
