"""Processes for modules. They are children of a small process that has loaded what all modules import, and nothing else of Ansible:
a copy of it is made in a fraction of the time that a new Python takes.
"""
import importlib
import importlib.util
import json
import locale
import os
import selectors
import signal
import socket
import struct
import sys
import types

from stead_resource import Failed

# How Ansible writes what it exchanges with modules of any author.
PROFILE = "legacy"
# How much a module may print, and how often is looked whether the call is cancelled, in seconds.
MOST_PRINTED, TICK = 16 << 20, 0.1
# Files that may be open, beyond those of standard input and output, in a process that has just been made.
MOST_FILES = 1024


class Nursery:
    """The process that children come from, and the one that runs now."""

    def __init__(self):
        self.end, other = socket.socketpair()
        self.process = os.fork()
        if self.process == 0:
            # It hears and says nothing else.
            os.closerange(3, other.fileno())
            os.closerange(other.fileno() + 1, MOST_FILES)
            try:
                serve(other)
            finally:
                os._exit(0)
        other.close()

    def close(self):
        self.end.close()
        os.waitpid(self.process, 0)

    def run(self, asked, call):
        """Runs a module, and returns what it printed. It and what it started are ended where the call is cancelled, or says too much."""
        pipes = [os.pipe(), os.pipe()]
        text = json.dumps(asked).encode("utf-8", "surrogateescape")
        socket.send_fds(self.end, [struct.pack("!I", len(text))], [written for _, written in pipes])
        for _, written in pipes:
            os.close(written)
        self.end.sendall(text)
        child, = struct.unpack("!i", received(self.end, 4))
        out, err = [read for read, _ in pipes]
        try:
            said = listen(out, err, self.end, call)
        except BaseException:
            os.killpg(child, signal.SIGKILL)
            received(self.end, 4)
            raise
        finally:
            os.close(out)
            os.close(err)
        status, = struct.unpack("!i", received(self.end, 4))
        stdout, stderr = (each.decode("utf-8", "surrogateescape") for each in said)
        return {"rc": -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), "stdout": stdout, "stderr": stderr}


def listen(out, err, end, call):
    """What a child prints until it has ended; a program that it left running may keep its ends open."""
    said = {out: [], err: []}
    with selectors.DefaultSelector() as ready:
        for each in (out, err, end):
            ready.register(each, selectors.EVENT_READ)
        has_ended, much = False, 0
        while len(ready.get_map()) > 1 and not has_ended:
            found = [key for key, _ in ready.select(TICK)]
            # Its last words are there before its end is.
            has_ended = [key.fileobj for key in found] == [end]
            for key in found:
                if key.fileobj is not end:
                    read = os.read(key.fd, 1 << 16)
                    said[key.fd].append(read)
                    much += len(read)
                    if not read:
                        ready.unregister(key.fd)
            if much > MOST_PRINTED:
                raise Failed(f"the module printed more than {MOST_PRINTED >> 20} MiB", id="output")
            call.check_cancelled()
    return b"".join(said[out]), b"".join(said[err])


def received(end, size):
    read = b""
    while len(read) < size:
        more = end.recv(size - len(read))
        if not more:
            raise Failed("the process that modules run in has ended", id="ended")
        read += more
    return read


def serve(end):
    """Starts a child for each request, one after the other, and says what it was and how it ended."""
    from ansible.module_utils import basic
    for name in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    known = {}
    practise(basic)
    while True:
        head, ends, _, _ = socket.recv_fds(end, 4, 2)
        if not head:
            return
        asked = json.loads(received(end, struct.unpack("!I", head + (received(end, 4 - len(head)) if len(head) < 4 else b""))[0]))
        module = warm(asked["code"], known)
        child = os.fork()
        if child == 0:
            become(basic, asked, module, ends)
        try:
            os.setpgid(child, child)
        except OSError:
            pass  # It has done so itself.
        for each in ends:
            os.close(each)
        end.sendall(struct.pack("!i", child))
        end.sendall(struct.pack("!i", os.waitpid(child, 0)[1]))


def practise(basic):
    """Does once what each module does with its options and its answer. Python keeps what it learns of types and the locale, and children
    have it; they would learn it again, each in memory of its own."""
    kinds = {"str": "a", "list": ["a"], "dict": {"a": 1}, "bool": True, "int": 1, "path": "/", "raw": None}
    try:
        from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
        ArgumentSpecValidator({kind: {"type": kind} for kind in kinds}).validate(dict(kinds))
        basic.remove_values({"a": [1, 1.5, "b", True, None]}, {"another"})
        locale.setlocale(locale.LC_ALL, "")
    except Exception:
        pass  # Then each child learns it.


def warm(code, known):
    """Loads what a module imports, once, so that its children have it. Returns where the module is, and its code."""
    if code.startswith("ansible_collections.") and not hasattr(warm, "finder"):
        from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
        places = os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").split(":")
        warm.finder = _AnsibleCollectionFinder([place for place in places if place])
        warm.finder._install()
    spec = None
    try:
        spec = importlib.util.find_spec(code)
        mark = os.stat(spec.loader.get_filename(code)).st_mtime_ns
        if known.get(code, [None])[0] != mark:
            known.pop(code, None)
            known[code] = mark, spec.loader.get_code(code)
            importlib.import_module(code)
    except (Exception, SystemExit):
        pass  # It says so itself, as it runs.
    sys.modules.pop(code, None)
    return spec, known.get(code, [None, None])[1]


def become(basic, asked, module, ends):
    """Runs a module as the script that it is, and ends."""
    status = 1
    try:
        os.setpgid(0, 0)
        os.chdir(asked["directory"])
        os.dup2(ends[0], 1)
        os.dup2(ends[1], 2)
        os.closerange(3, MOST_FILES)
        basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = asked["text"].encode("utf-8", "surrogateescape"), PROFILE
        code, (spec, compiled) = asked["code"], module
        spec = spec or importlib.util.find_spec(code)
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(basic.__file__))))
        script = sys.modules["__main__"] = types.ModuleType("__main__")
        vars(script).update(_module_fqn=code, _modlib_path=package, __file__=spec.origin, __spec__=spec, __loader__=spec.loader,
                            __package__=spec.parent, __cached__=spec.cached)
        sys.argv = [spec.origin or code]
        exec(compiled or spec.loader.get_code(code), vars(script))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        try:
            # Some modules say by a hook of their own that they failed.
            sys.excepthook(*sys.exc_info())
        except SystemExit:
            pass
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status & 0xFF)
