"""Processes for modules. They are children of a small process that has loaded what all modules import, and nothing else of Ansible:
a copy of it is made in a fraction of the time that a new Python takes.
"""
import importlib
import importlib.util
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


class ForkServer:
    """The process that children are copies of, and the one that runs now."""

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

    def run(self, code, arguments, call):
        """Runs a module, and returns what it printed. It and what it started are ended where the call is cancelled, or says too much."""
        pipes = [os.pipe(), os.pipe()]
        asked = "\0".join((code, call.directory, arguments)).encode("utf-8", "surrogateescape")
        socket.send_fds(self.end, [struct.pack("!I", len(asked))], [written for _, written in pipes])
        for _, written in pipes:
            os.close(written)
        self.end.sendall(asked)
        child, = struct.unpack("!i", received(self.end, 4))
        out, err = [read for read, _ in pipes]
        try:
            said = listen(out, err, self.end, call)
        except BaseException:
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended
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
    """Starts a child for each request, one after the other, and says what it was and how it ended. What this process writes to is copied
    for each child: it does no more than it must."""
    from ansible.module_utils import basic
    for name in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    known = {}
    warm_up(basic)
    while True:
        head, ends, _, _ = socket.recv_fds(end, 4, 2)
        if not head:
            return
        size, = struct.unpack("!I", head + (received(end, 4 - len(head)) if len(head) < 4 else b""))
        code, directory, arguments = received(end, size).split(b"\0", 2)
        module = known.get(code)
        if module is None or not module.is_current():
            module = known[code] = Module(code.decode())
        child = os.fork()
        if child == 0:
            become(basic, module, directory, arguments, ends)
        try:
            os.setpgid(child, child)
        except OSError:
            pass  # It has done so itself.
        for each in ends:
            os.close(each)
        end.sendall(struct.pack("!i", child))
        end.sendall(struct.pack("!i", os.waitpid(child, 0)[1]))


def warm_up(basic):
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


class Module:
    """The code of a module, and what it imports, which its children have. Nothing of it where it cannot be loaded: it says so as it runs."""

    def __init__(self, name):
        self.name, self.spec, self.code, self.mark = name, None, None, None
        if name.startswith("ansible_collections.") and not hasattr(Module, "finder"):
            from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
            places = os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").split(":")
            Module.finder = _AnsibleCollectionFinder([place for place in places if place])
            Module.finder._install()
        try:
            self.spec = importlib.util.find_spec(name)
            self.path = self.spec.loader.get_filename(name)
            self.mark = os.stat(self.path).st_mtime_ns
            self.code = self.spec.loader.get_code(name)
            importlib.import_module(name)
        except (Exception, SystemExit):
            pass
        sys.modules.pop(name, None)

    def is_current(self):
        try:
            return self.code is not None and os.stat(self.path).st_mtime_ns == self.mark
        except OSError:
            return False


def become(basic, module, directory, arguments, ends):
    """Runs a module as the script that it is, and ends."""
    status = 1
    try:
        os.setpgid(0, 0)
        os.chdir(directory)
        os.dup2(ends[0], 1)
        os.dup2(ends[1], 2)
        os.closerange(3, MOST_FILES)
        basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = arguments, PROFILE
        spec = module.spec or importlib.util.find_spec(module.name)
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(basic.__file__))))
        script = sys.modules["__main__"] = types.ModuleType("__main__")
        vars(script).update(_module_fqn=module.name, _modlib_path=package, __file__=spec.origin, __spec__=spec, __loader__=spec.loader,
                            __package__=spec.parent, __cached__=spec.cached)
        sys.argv = [spec.origin or module.name]
        exec(module.code or spec.loader.get_code(module.name), vars(script))
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
