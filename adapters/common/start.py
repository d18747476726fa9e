"""How an adapter of another tool starts: in the Python that the tool is installed for, and with nothing but what root trusts."""
import os
import stat
import sys

# What is imported where it is used is not needed in a Python that only finds the other one.

# How many links a path may lead through, as on Linux.
MOST_LINKS = 40


def package(name):
    """The folder of a package of this Python, or nothing."""
    import importlib.util
    found = importlib.util.find_spec(name)
    return found.submodule_search_locations[0] if found and found.submodule_search_locations else None


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


def judge_code(event, arguments, judged=set(), folders=set()):
    """Judges a file of Python, and a library, before its code runs, wherever Python found it: a hook of `sys.addaudithook`. What nobody
    else could change then is not judged again, also not in copies of this process: only root could have let others in."""
    if event == "exec":
        path = getattr(arguments[0], "co_filename", None)
    elif event == "import":
        path = arguments[1]
    else:
        return
    if isinstance(path, str) and os.path.isabs(path) and path not in judged:
        from importlib.util import cache_from_source
        kept, judged_path = cache_from_source(path), path
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        for each in filter(os.path.lexists, (path, kept)):
            why = None if is_of_root(each, folders) else judge(each)
            if why:
                try:
                    from adapter import Refused
                except ImportError:  # while that is loaded itself
                    refuse(why)
                raise Refused(why)
        judged.add(judged_path)


def is_of_root(path, folders):
    """Whether a file is root's alone, and so is all of the path to it. What is known of folders is not looked for again: a library of
    hundreds of files is in a few."""
    folder = os.path.dirname(path)
    if folder not in folders:
        if changeable(folder):
            return False
        folders.add(folder)
    about = os.lstat(path)
    return about.st_uid == 0 and not stat.S_ISLNK(about.st_mode) and not about.st_mode & 0o022


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
    import importlib.util  # the hook finds it loaded
    import pwd
    import site
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
    """Goes on in the Python that a tool is installed for: the one that the program of its name says in its first line, or this one. What
    another Python has installed is not looked at, and its `.pth` files do not run."""
    is_second = os.environ.pop("STEAD_PYTHON", None) is not None
    program = program_of(name)
    python, why = python_of(program) if program and not is_second else (None, None)
    if python and not is_this(python):
        os.environ["STEAD_PYTHON"] = python
        os.execv(python, [python, "-I" if os.geteuid() == 0 else "-E", "-S", script, *sys.argv[1:]])
    enter()
    if package(name) is None:
        refuse(why)
        if is_second:
            fail(f"{name} is not installed for '{sys.executable}', which '{program}' names")
        fail(f"'{program}' does not say which Python {name} is installed for" if program else
             f"{name} is not installed: neither this Python nor a program '{name}' in PATH has it")
    for path in [package(name), *filter(os.path.exists, sys.path)]:
        refuse(judge(path))


def program_of(name):
    """A program in `PATH`, or nothing."""
    places = [os.path.join(folder, name) for folder in os.get_exec_path()]
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def python_of(program):
    """The Python that the first line of a program names, or nothing; and why root does not use it."""
    try:
        with open(program, "rb") as file:
            first = file.readline(512).decode("utf-8", "replace").strip()
    except OSError:
        return None, None
    python = first[2:].strip().split(" ")[0] if first.startswith("#!") else ""
    is_python = os.path.basename(python).rstrip("0123456789.") in ("python", "pypy")
    if not is_python or not os.path.isabs(python) or not os.path.exists(python):
        return None, None
    if os.geteuid() != 0:
        return python, None
    # Python reads where its own library is before it runs anything.
    folder = os.path.dirname(python)
    settings = [os.path.join(place, "pyvenv.cfg") for place in (folder, os.path.dirname(folder))]
    folders = set()
    places = [program, python, *filter(os.path.lexists, settings)]
    is_other = lambda path: not os.path.lexists(path) or not is_of_root(path, folders)
    why = next(filter(None, map(judge, places)), None) or next(filter(None, map(judge, filter(is_other, libraries(python, settings)))), None)
    return (None, why) if why else (python, None)


def libraries(python, settings):
    """The paths from which a Python loads its standard library, before any code of ours can check them: beside its program, or by the
    settings of its environment."""
    homes = [os.path.dirname(os.path.realpath(python))]
    for path in filter(os.path.isfile, settings):
        with open(path, encoding="utf-8", errors="replace") as file:
            stated = [line.partition("=") for line in file]
        homes += [value.strip() for name, _, value in stated if name.strip().lower() == "home"]
    for home in homes:
        yield home
        for library in (os.path.join(os.path.dirname(home), name) for name in ("lib", "lib64")):
            if not os.path.isdir(library):
                continue
            yield library
            for name in sorted(os.listdir(library)):
                if name.startswith(("python", "pypy")):
                    own = os.path.join(library, name)
                    for folder in (os.path.join(own, *part) for part in ((), ("__pycache__",), ("encodings",), ("encodings", "__pycache__"))):
                        if os.path.isdir(folder):
                            yield folder
                            yield from filter(os.path.isfile, (os.path.join(folder, each) for each in os.listdir(folder)))


def is_this(python):
    """Whether a program is the one that runs this. One of an environment is a link in a folder of its own."""
    folders = [os.path.realpath(os.path.dirname(path)) for path in (python, sys.executable)]
    return folders[0] == folders[1] and os.path.realpath(python) == os.path.realpath(sys.executable)


def refuse(why):
    if why:
        fail(why)


def fail(message):
    # Without a module: what is refused may be one.
    text = "".join(f"\\u{ord(each):04x}" if each < " " or each in '"\\' else each for each in message)
    print(f'{{"error": "{text}"}}', file=sys.stderr)
    sys.exit(1)
