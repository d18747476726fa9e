"""Resources in Python for stead and dsc: this one file lies beside the resource, and needs nothing but Python 3.8.

A resource is a class with `get`, and with `set`, `delete` and `export` where it can do that; `run(TheClass())` at the end of the
file makes a program of it. Started with the argument `resident` the program stays and is called by JSON-RPC, a line each;
started with the name of an operation it carries that out once. What it prints goes to standard error in both.
"""
import collections
import json
import os
import select
import sys

# What is imported where it is used is not needed by most programs, and would make up a tenth of their start.
PROTOCOL = 1
LEVELS = {"error": "error", "warning": "warn", "info": "info", "verbose": "debug", "debug": "trace"}


class Failed(Exception):
    """The resource failed. `id` is a name for the error that stays as the text changes."""

    code, exit = -32000, 1

    def __init__(self, message, id=None, property=None):
        super().__init__(message)
        self.data = {name: value for name, value in (("id", id), ("property", property)) if value is not None}


class Invalid(Failed):
    """The properties make no sense; `property` is the name of the one that is wrong, or a JSON pointer to it."""

    code, exit = -32602, 2


class Unsupported(Failed):
    """The resource cannot do what it is asked for."""

    code, exit = -32601, 3


class Cancelled(Failed):
    """The call was ended early."""

    code, exit = -32002, 4


class Pending(Exception):
    """Still working: `set`, or `get` as it is tested, raises it to be called again, after so many seconds, with `data` in `call.pending`."""

    def __init__(self, message, data=None, after=None):
        super().__init__(message)
        stated = (("message", message), ("data", data), ("after", after))
        self.answer = {name: value for name, value in stated if value is not None}


class Unknown(Exception):
    """Nobody can tell: `differing` raises it where a look does not say whether the state is as desired, and `plan` where nothing
    says what `set` would change. It is set all the same."""


class Call:
    """What a call has besides the properties."""

    def __init__(self, params=None, write=None, is_cancelled=None):
        params = params or {}
        self.type, self.version = params.get("type"), params.get("version")
        self.directory = params.get("directory") or os.environ.get("DSC_CONFIG_ROOT") or os.getcwd()
        self.deadline, self.pending = params.get("deadline"), params.get("pending")
        self._write, self._is_cancelled = write or (lambda level, message: None), is_cancelled or (lambda: False)

    def log(self, level, message):
        """Says something: `error`, `warning`, `info`, `verbose` or `debug`; also `warn` and `trace`, as on standard error."""
        level = {"warn": "warning", "trace": "debug"}.get(level, level)
        if level not in LEVELS:
            raise ValueError(f"the level of a message is one of {', '.join(LEVELS)}, not {level!r}")
        self._write(level, _shown(message))

    def check_cancelled(self):
        """Ends the call if it is to end early. Call it where that leaves nothing half done."""
        if self._is_cancelled():
            raise Cancelled("it was cancelled")

    def path(self, path):
        """A path of the properties: a relative one starts at the folder of the document."""
        return os.path.join(self.directory, path)


class Resource:
    """One kind of thing. `desired` are the properties as they are stated, a state is what is there."""

    def get(self, desired, call):
        """The actual state; `_exist` is false in that of what is not there."""
        raise Unsupported("it cannot be read")

    def differing(self, desired, state):
        """The names of the properties that are not as desired."""
        exists = desired.get("_exist", True)
        if exists != state.get("_exist", True):
            return ["_exist"]
        return [name for name in desired if exists and name != "_exist" and secret(desired[name]) != secret(state.get(name))]

    def plan(self, desired, call):
        """The state that `set` would lead to. It changes nothing."""
        state = self.get(desired, call)
        if desired.get("_exist") is False:
            return {**state, "_exist": False}
        # What is not there is made, whether the document says so or not.
        return {**state, **desired, **({"_exist": True} if "_exist" in state else {})}

    def set(self, desired, call):
        """Makes it as desired. Returns the state afterwards, or nothing: then it is read."""
        raise Unsupported("it cannot be set")

    def delete(self, desired, call):
        """Removes it."""
        raise Unsupported("it cannot be deleted")

    def export(self, wanted, call):
        """The states of all that are there, each with its `_name` if it has one."""
        raise Unsupported("it cannot be exported")

    def answer(self, method, desired, what_if, call):
        """Carries out a method: what is answered to stead. A resource that makes more of one call than these methods do has its own."""
        if method == "get":
            return {"actual": self.get(desired, call)}
        if method == "test":
            state = self.get(desired, call)
            try:
                differing = self.differing(desired, state)
            except Unknown as why:
                return {"actual": state, "unknown": str(why)}
            return {"actual": state, "inDesiredState": not differing, "differing": differing}
        if method == "set":
            before = self.get(desired, call)
            try:
                after = self.plan(desired, call) if what_if else None
            except Unknown as why:
                return {"after": before, "changed": [], "unknown": str(why)}
            after = after if what_if else self.set(desired, call)
            after = self.get(desired, call) if after is None else after
            names = list(dict.fromkeys([*before, *after]))
            return {"after": after, "changed": [name for name in names if before.get(name) != after.get(name)]}
        if method == "delete":
            return {"messages": ["delete it"]} if what_if else self.delete(desired, call) or {}
        if method == "export":
            return {"instances": [{"properties": state} for state in self.export(desired, call)]}
        raise Unsupported(f"there is no method '{method}'")


def ask(resource, method, desired=None, what_if=False, call=None):
    """Carries out a method as stead would have it done, and returns what is answered: for tests of a resource."""
    try:
        return resource.answer(method, desired or {}, what_if, call or Call())
    except Pending as pending:
        if method in ("test", "set"):
            return {"pending": pending.answer}
        raise Failed(str(pending))


def secret(value):
    """The text or object of a property that is a secret, however it comes."""
    if isinstance(value, dict) and len(value) == 1:
        return value.get("secureString", value.get("secureObject", value))
    return value


def run(*resources, side_by_side=1):
    """Makes a program of resources. Where it has several, each has the name of its `type`; `side_by_side` says how many calls
    it takes at once, each in a thread."""
    by_type = {getattr(resource, "type", None): resource for resource in resources}

    def find(name):
        found = by_type.get(name) or (resources[0] if len(resources) == 1 else None)
        if found is None:
            raise Unsupported(f"there is no resource '{name}' in this program")
        return found

    # What the resource or its programs print does not get into an answer, and what is asked is not theirs to read.
    source, target = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if sys.argv[1:2] == ["resident"]:
        _Resident(find, source, target, side_by_side).serve()
    else:
        sys.exit(_once(find, source, target))


def _shown(text):
    """A text to be shown: what has no form in Unicode, as some names of files, is escaped."""
    return str(text).encode(errors="backslashreplace").decode()


def _trace():
    import traceback

    return _shown(traceback.format_exc())


# A number or a text that JSON has no form for is an error of the call, not of all that the other side reads.
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _write(target, values):
    text = "".join(_JSON.encode(value) + "\n" for value in values).encode()
    while text:
        text = text[os.write(target, text):]


def _once(find, source, target):
    def write(level, message):
        print(json.dumps({LEVELS[level]: message}), file=sys.stderr, flush=True)

    method, what_if = (sys.argv[1:2] or [""])[0], "--what-if" in sys.argv
    try:
        with open(source, closefd=True) as stream:
            text = stream.read()
        desired = json.loads(text) if text.strip() else {}
        kept = desired.pop("_metadata", {}).get("stead", {}).get("pending")
        typed = sys.argv[sys.argv.index("--type") + 1] if "--type" in sys.argv else None
        call = Call({"type": typed, "pending": kept}, write)
        _write(target, _printed(method, ask(find(typed), method, desired, what_if, call)))
        return 0
    except Failed as failed:
        write("error", _shown(failed))
        return failed.exit
    except Exception as error:
        write("debug", _trace())
        write("error", _shown(f"{type(error).__name__}: {error}"))
        return 1


def _printed(method, answer):
    """The lines of a program that is called once: `"return": "stateAndDiff"` in its manifest for `test` and `set`."""
    if "pending" in answer:
        state = {"_metadata": {"stead": {"pending": answer["pending"]}}}
        return [{**state, "_inDesiredState": False}, []] if method == "test" else [state, []]
    if method == "get":
        return [answer["actual"]]
    said = {name: answer[name] for name in ("unknown", "before") if name in answer}
    more = {"_metadata": {"stead": said}} if said else {}
    if method == "test":
        return [{**answer["actual"], "_inDesiredState": answer.get("inDesiredState", False), **more}, answer.get("differing", [])]
    if method == "set":
        return [{**answer["after"], **more}, answer["changed"]]
    if method == "delete":
        return [{"_metadata": {"whatIf": answer["messages"]}}] if "messages" in answer else []
    if method == "validate":
        return [answer]
    return [instance["properties"] for instance in answer["instances"]]


class _Resident:
    def __init__(self, find, source, target, side_by_side):
        self.find, self.source, self.target, self.width = find, source, target, side_by_side
        self.unread, self.waiting, self.cancelled = b"", collections.deque(), set()
        self.writing = None

    def serve(self):
        threads = None
        if self.width > 1:
            import threading
            from concurrent.futures import ThreadPoolExecutor

            threads, self.writing = ThreadPoolExecutor(self.width), threading.Lock()
        while True:
            request = self.waiting.popleft() if self.waiting else self.next(None)
            if request is None:
                break
            if threads:
                threads.submit(self.answer_or_end, request)
            else:
                self.answer(request)
        os._exit(0) if threads else None

    def next(self, timeout):
        """The next request; none at the end, or if there is none in that time. A cancel is taken in."""
        while True:
            line, found, rest = self.unread.partition(b"\n")
            if found:
                self.unread = rest
                message = json.loads(line)
                if message["method"] != "$/cancel":
                    return message
                self.cancelled.add(message["params"]["id"])
                continue
            if timeout is not None and not select.select([self.source], [], [], timeout)[0]:
                return None
            read = os.read(self.source, 1 << 16)
            if not read:
                return None
            self.unread += read

    def is_cancelled(self, id):
        if self.width == 1:
            request = self.next(0)
            if request is not None:
                self.waiting.append(request)
        return id in self.cancelled

    def say(self, **message):
        lines = [{"jsonrpc": "2.0", **message}]
        if self.writing is None:
            return _write(self.target, lines)
        with self.writing:
            _write(self.target, lines)

    def answer_or_end(self, request):
        try:
            self.answer(request)
        except BaseException:
            # As without threads, where it ends the program.
            sys.excepthook(*sys.exc_info())
            os._exit(1)

    def answer(self, request):
        id, params = request["id"], request.get("params", {})

        def write(level, message):
            self.say(method="$/log", params={"id": id, "level": level, "message": message})

        try:
            if request["method"] == "initialize":
                result = {"protocol": PROTOCOL, "sideBySide": self.width}
            else:
                call = Call(params, write, lambda: self.is_cancelled(id))
                desired, what_if = params.get("properties"), params.get("whatIf", False)
                result = ask(self.find(params.get("type")), request["method"], desired, what_if, call)
            self.say(id=id, result=result)
        except Failed as failed:
            self.say(id=id, error={"code": failed.code, "message": _shown(failed), "data": failed.data})
        except Exception as error:
            write("debug", _trace())
            self.say(id=id, error={"code": Failed.code, "message": _shown(f"{type(error).__name__}: {error}")})
        self.cancelled.discard(id)
