"""The states of Idem as resources, `Idem.a.b/c`: a test is a call with `ctx.test`, a set one without."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "common")]
from start import go_on

if __name__ == "__main__":
    # Nothing else is loaded in a Python that only finds the other one.
    go_on(os.path.abspath(__file__), "idem")

import copy
import inspect
import json
import re
import tempfile
import typing

from adapter import end, handed, holds_secret, plain_json, stated
from stead_resource import Failed, Invalid, Pending, Resource, Unsupported, run

ADAPTER, PROFILE, RUN = "Idem/State", "default", "stead"
SUBS = ("idem", "exec", "states", "acct", "tool", "evbus", "rend", "source", "esm", "reconcile", "resource")
TYPES = {str: ["string", "object"], int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
# How much of a comment is passed on, and how many.
MOST_SAID, MOST_COMMENTS = 4096, 64
# What Idem builds states of others from.
INTERNAL = ("auto_state",)
# Functions of a module that are not states.
NO_STATES = ("describe", "is_pending")


class Idem:
    """The hub, with the states that are installed."""

    def __init__(self):
        # Else what states log is kept beside this file, secrets among it. It is said on standard error as well, which stead covers.
        os.environ["POP_LOG_FILE"] = os.devnull
        arguments, sys.argv = sys.argv, sys.argv[:1]
        import pop.hub
        self.hub = pop.hub.Hub()
        for sub in SUBS:
            self.hub.pop.sub.add(dyne_name=sub)
        self.hub.pop.config.load(["idem", "acct", "evbus", "rend"], cli="idem", parse_cli=False)
        self.hub.pop.loop.create()
        sys.argv = arguments
        self.folder = tempfile.TemporaryDirectory(prefix="stead-idem-")
        # States look for the run that they are part of.
        self.wait(self.hub.idem.state.create(
            RUN, sls_sources=[], param_sources=[], render="jinja|yaml", runtime="serial", subs=["states"], cache_dir=self.folder.name,
            test=False, acct_file=os.environ.get("ACCT_FILE"), acct_key=os.environ.get("ACCT_KEY"), acct_profile=PROFILE, acct_blob=None,
            managed_state={}))

    def wait(self, coroutine):
        return self.hub.pop.Loop.run_until_complete(coroutine)

    def modules(self, place=None, ref=""):
        """Each module of states with its name, such as `aws.ec2.instance`."""
        place = self.hub.states if place is None else place
        for sub in getattr(place, "_subs", ()):
            yield from self.modules(place[sub], f"{ref}.{sub}".strip("."))
        for module in place:
            name = f"{ref}.{module.__name__.rpartition('.')[2]}".strip(".")
            yield name, module

    def functions(self, ref):
        """All functions of a module, by name."""
        module = self.hub.states
        try:
            for part in ref.split("."):
                module = module[part]
            return module._funcs
        except (AttributeError, KeyError, TypeError):
            raise Unsupported(f"Idem has no states '{ref}'")

    def is_pending(self, rule, ref, result, reruns):
        """What a module itself says of whether a result is pending. A failure is counted by whoever runs it again."""
        about = {"ctx": None, "reruns_wo_change_count": 0, "reruns_count": reruns,
                 "max_pending_reruns": self.hub.reconcile.init.DEFAULT_MAX_PENDING_RERUNS}
        more = {"state": ref, **about} if "state" in rule.signature.parameters else {}

        async def called():
            return await self.hub.pop.loop.unwrap(rule(ret=result, **more))

        return bool(self.wait(called()))

    def call(self, ref, function, name, arguments, test, pending):
        """What a state returns."""
        takes = parameters(function)
        profile = arguments.pop("acct_profile", None) or PROFILE
        if "acct_profile" in takes:
            arguments["acct_profile"] = profile

        async def called():
            known = copy.deepcopy(self.hub.idem.RUNS[RUN]["acct_data"])
            context = await self.hub.idem.acct.ctx(f"states.{ref}", profile=profile, acct_data=known, validate=True)
            context.update({"test": test, "rerun_data": pending, "old_state": None, "run_name": RUN, "skip_esm": True, "meta": {}, "sls_meta": {},
                            "tag": f"{ref}_|-{name}_|-{name}_|-{function.__name__}"})
            return await self.hub.pop.loop.unwrap(function(context, name, **arguments))

        return self.wait(called())


def states_of(functions):
    return {name: function for name, function in functions.items() if not name.startswith("_") and name not in NO_STATES}


def parameters(function):
    """What a state takes besides the hub, its context and its name."""
    taken = {name: about for name, about in function.signature.parameters.items() if name not in ("hub", "ctx", "name")}
    return {name: about for name, about in taken.items() if about.kind is not inspect.Parameter.VAR_POSITIONAL}


class State(Resource):
    """Any state; which one is the type of the call."""

    def __init__(self, idem):
        self.idem = idem

    def answer(self, method, desired, what_if, call):
        ref = ref_of(call.type)
        known = self.idem.functions(ref)
        functions = states_of(known)
        fun = function_of(functions, desired)
        if method == "validate":
            return verdict(functions, fun, desired)
        if method not in ("get", "test", "set"):
            raise Unsupported(f"states have no method '{method}'")
        if method == "test" and call.pending is not None:
            return {"actual": {}, "inDesiredState": False, "differing": []}
        # Idem calls such a function each time.
        if method == "test" and fun not in ("present", "absent"):
            return {"actual": {}, "unknown": f"'{fun}' has no test"}
        if method == "get" and fun not in ("present", "absent"):
            return {"actual": stated(desired)}
        returned = self.call(ref, functions[fun], self.rule(ref, known), desired, method != "set" or what_if, call)
        if method == "get":
            return {"actual": returned.before}
        if method == "test":
            return {"actual": returned.before, "inDesiredState": not returned.changed, "differing": returned.changed}
        return {"after": returned.after, "changed": returned.changed, "messages": returned.comments if what_if else []}

    def rule(self, ref, known):
        """What a module says by a function of its own of whether a result is pending, where it has one."""
        rule = known.get("is_pending")
        return rule and (lambda result, reruns: self.idem.is_pending(rule, ref, result, reruns))

    def call(self, ref, function, rule, desired, test, call):
        kept = call.pending or {}
        name = desired.get("name") or call.type
        arguments = handed(desired, "name", "fun")
        try:
            result = self.idem.call(ref, function, name, arguments, test, kept.get("rerun_data"))
        except Failed:
            raise
        except Exception as error:
            raise Failed(f"{type(error).__name__}: {error}", id="raised")
        if not isinstance(result, dict) or "result" not in result:
            raise Failed(f"'{ref}' returned what no state returns", id="answer")
        comments = comments_of(result)
        data, reruns = result.get("rerun_data"), kept.get("reruns", 0)
        if not test and (rule(result, reruns) if rule and (data or result["result"] is not False) else data):
            # What a rule of the module is asked about counts: it may be pending with nothing that changes.
            counted = {"reruns": reruns + 1} if rule else {}
            raise Pending("; ".join(comments) or "it is still working", {"rerun_data": data, **counted})
        if result["result"] is False:
            raise Failed("; ".join(comments) or "the state does not say why", id="failed")
        return Returned(desired, result, comments)


class Returned:
    """What a state returned, as the states before and after it."""

    def __init__(self, desired, result, comments):
        old, new, changes = (result.get(name) for name in ("old_state", "new_state", "changes"))
        absent = desired.get("_exist") is False
        if holds_secret(desired):
            old, new, changes, comments = old and {}, new and {}, changes and {"new": {}}, []
        self.comments = comments
        self.before = {**(stated(desired) if old is None and not absent and not changes else {}), **state(old)}
        self.after = {**stated(desired), **state(new)}
        if "_exist" in desired or old is None and new is not None or old is not None and new is None:
            self.before["_exist"], self.after["_exist"] = old is not None, new is not None
        self.changed = self.names(changes, result)

    def names(self, changes, result):
        if not changes and result["result"] is not None:
            return []
        sides = [changes.get(side) for side in ("old", "new")] if isinstance(changes, dict) else []
        found = [name for side in sides if isinstance(side, dict) for name in side]
        if self.before.get("_exist") != self.after.get("_exist"):
            found.append("_exist")
        return list(dict.fromkeys(found)) or ["name"]


def state(value):
    """A state as properties."""
    value = plain_json(value)
    return value if isinstance(value, dict) else {} if value is None else {"value": value}


def comments_of(result):
    said = result.get("comment") or []
    said = [said] if isinstance(said, str) else said if isinstance(said, (list, tuple)) else [said]
    return [str(each)[:MOST_SAID] for each in said[:MOST_COMMENTS]]


def ref_of(type_name):
    found = re.fullmatch(r"Idem(?:\.([\w.]+))?/(\w+)", type_name or "")
    if not found:
        raise Invalid(f"'{type_name}' is not a type of a state")
    return ".".join(filter(None, found.groups()))


def function_of(functions, desired):
    """The function that a desired state stands for."""
    fun = desired.get("fun") or ("absent" if desired.get("_exist") is False else "present")
    if fun not in functions:
        known = ", ".join(sorted(functions))
        raise Invalid(f"there is no function '{fun}'; there are {known}", property="fun" if "fun" in desired else None)
    return fun


def verdict(functions, fun, desired):
    """Names that no function of the module takes are errors of typing; what a function requires must be stated."""
    taken = {name: about for function in functions.values() for name, about in parameters(function).items()}
    is_open = any(about.kind is inspect.Parameter.VAR_KEYWORD for about in taken.values())
    known = {"name", "fun", "acct_profile", *taken}
    wrong = [name for name in desired if not name.startswith("_") and name not in known and not is_open]
    lacking = [name for name, about in parameters(functions[fun]).items()
               if about.default is inspect.Parameter.empty and about.kind is not inspect.Parameter.VAR_KEYWORD
               and name not in desired and name != "acct_profile"]
    problems = [f"it takes no '{name}'" for name in wrong] + [f"'{name}' is required" for name in lacking]
    return {"valid": False, "reason": "; ".join(problems)} if problems else {"valid": True}


def schema(functions):
    properties = {"name": {"type": "string", "description": "The name"},
                  "acct_profile": {"type": "string", "description": "The profile of acct that it runs with"}}
    others = [name for name in functions if name not in ("present", "absent")]
    if others:
        properties["fun"] = {"enum": others, "description": "The function; without it present, or absent where it is not to exist"}
    if "present" in functions or "absent" in functions:
        properties["_exist"] = {"type": "boolean"}
    properties["_inDesiredState"] = {"type": "boolean", "readOnly": True}
    for function in functions.values():
        for name, about in parameters(function).items():
            if about.kind is not inspect.Parameter.VAR_KEYWORD:
                properties.setdefault(name, shape(about))
    # What a state returns has names of its own; the adapter says which are taken.
    return {"type": "object", "required": ["name"], "properties": properties}


def shape(about):
    kind = typing.get_origin(about.annotation) or about.annotation
    made = {"type": TYPES[kind]} if isinstance(kind, type) and kind in TYPES else {}
    if kind is str:
        made["propertyNames"] = {"enum": ["secureString", "secureObject"]}
    if isinstance(about.default, (str, int, float, bool)):
        made["default"] = about.default
    return made


def listed(idem):
    from idem.version import version as installed
    for ref, module in idem.modules():
        functions = states_of(getattr(module, "_funcs", {}))
        if functions and ref not in INTERNAL:
            owner, _, name = ref.rpartition(".")
            yield {"type": f"Idem.{owner}/{name}" if owner else f"Idem/{name}", "kind": "resource", "version": version(installed),
                   "capabilities": ["get", "test", "set", "setHandlesExist", "setWhatIf"], "requireAdapter": ADAPTER,
                   "description": (inspect.getdoc(module) or "").split("\n")[0], "schema": schema(functions)}


def version(text):
    found = re.match(r"\d+\.\d+\.\d+", text)
    return found[0] if found else "0.0.0"


def main():
    idem = Idem()
    if sys.argv[1:2] == ["list"]:
        print("\n".join(map(json.dumps, listed(idem))))
    else:
        run(State(idem))
        end(idem.folder)


if __name__ == "__main__":
    main()
