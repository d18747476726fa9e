"""The modules of Ansible as resources, `Ansible.NAMESPACE.COLLECTION/MODULE`: a test is a run in check mode, a set a run."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "common")]
from start import go_on

if __name__ == "__main__":
    # Nothing else is loaded in a Python that only finds the other one.
    go_on(os.path.abspath(__file__), "ansible")

import gc
import json
import re

import ansible_docs as docs
from adapter import end, handed, holds_secret, plain_json, stated
from start import judge
from stead_resource import Failed, Invalid, Resource, Unsupported, run

# Of what modules return: the rest is in `result`.
OUTCOME = ("changed", "failed", "skipped", "diff", "invocation", "warnings", "deprecations", "exception", "msg", "_ansible_parsed")


class Module(Resource):
    """Any module; which one is the type of the call."""

    def __init__(self):
        self.ansible = None

    def answer(self, method, desired, what_if, call):
        if method == "validate":
            return {"valid": True}
        name = module_of(call.type)
        if method not in ("get", "test", "set"):
            raise Unsupported(f"modules have no method '{method}'")
        # A module looks before it changes anything, and says what was there.
        is_run = method == "set" and not what_if
        checked = Checked(desired, self.run(name, desired, call, not is_run))
        if is_run:
            return {"before": checked.before(), "after": checked.after(), "changed": checked.differing()}
        if checked.unknown is not None:
            unknown = {"unknown": checked.unknown}
            return {"actual": {}} if method == "get" else {"actual": {}, **unknown} if method == "test" else {"after": {}, **unknown}
        silent = checked.silent(name)
        actual = {**checked.before(), **({"drift": [silent]} if silent and "drift" not in desired else {})}
        if method == "get":
            return {"actual": actual}
        if method == "test":
            return {"actual": actual, "inDesiredState": not checked.changed, "differing": checked.differing()}
        said = {"messages": [silent]} if silent else {}
        return {"before": actual, "after": checked.after(), "changed": checked.differing(), **said}

    def close(self):
        if self.ansible is not None:
            self.ansible.server.close()
            end(self.ansible.folder)

    def run(self, name, desired, call, check):
        if self.ansible is None:
            from ansible_run import Ansible
            self.ansible = Ansible()
        arguments = {name: value for name, value in handed(desired).items() if value is not None}
        hidden = holds_secret(desired)
        result = self.ansible.call(name, arguments, call, check, hidden)
        for warning in result.get("warnings") or []:
            call.log("warning", warning)
        if result.get("failed"):
            raise Failed(str(result.get("msg") or "the module does not say why"), id="failed")
        return result


class Checked:
    """What a run said, as states."""

    def __init__(self, desired, result):
        self.result, self.changed = result, bool(result.get("changed"))
        self.hidden, self.stated = holds_secret(desired), stated(desired)
        # A module without check mode is skipped in it, and so is one that has nothing to do.
        why = str(result.get("msg") or "it has no check mode")
        is_unknown = bool(result.get("skipped")) and "check mode" in why
        self.unknown = "it has no check mode" if is_unknown and self.hidden else why if is_unknown else None
        self.old, self.new = ({}, {}) if self.hidden else self.differences()

    def differences(self):
        """The parts of the states that the diff of Ansible shows: properties where it has names, or else the text of a file."""
        old, new = {}, {}
        diffs = self.result.get("diff") or []
        for diff in [diffs] if isinstance(diffs, dict) else diffs:
            before, after = diff.get("before"), diff.get("after")
            if isinstance(before, dict) and isinstance(after, dict):
                old.update({name: value for name, value in before.items() if value != after.get(name)})
                new.update({name: value for name, value in after.items() if value != before.get(name)})
            elif before != after and (isinstance(before, str) or isinstance(after, str)):
                old["text"], new["text"] = old.get("text", "") + (before or ""), new.get("text", "") + (after or "")
            elif diff.get("prepared"):
                new["text"] = new.get("text", "") + str(diff["prepared"])
        if (old.get("state") == "absent") != (new.get("state", self.stated.get("state")) == "absent") and self.changed:
            is_new = old.get("state") == "absent"
            old["_exist"], new["_exist"] = not is_new, is_new
        return plain_json(old), plain_json(new)

    def returned(self):
        rest = {name: value for name, value in self.result.items() if name not in OUTCOME and not name.startswith("_")}
        return {"result": plain_json(rest)} if rest and not self.hidden else {}

    def before(self):
        """What was there. What a module returned of a change is nothing of it."""
        return self.old if self.changed else {**self.stated, **self.old, **self.returned()}

    def after(self):
        return {**self.stated, **self.new, **self.returned()}

    def differing(self):
        if not self.changed:
            return []
        return list(dict.fromkeys([*self.old, *self.new])) or ["result"]

    def silent(self, name):
        """What check mode leaves open of a change, in words; nothing if it says all."""
        return f"'{name}' does not say what it would change" if self.changed and not self.new else None


def module_of(type_name):
    found = re.fullmatch(r"Ansible\.(\w+\.\w+)/(\w+)", type_name or "")
    if not found:
        raise Invalid(f"'{type_name}' is not a type of a module")
    return f"{found[1]}.{found[2]}"


def settle():
    """What Ansible reads besides modules: nothing of the working directory, and for root nothing that others can change."""
    for name in [name for name in os.environ if name.startswith("ANSIBLE_") and os.geteuid() == 0]:
        del os.environ[name]
    places = [place for place in ("~/.ansible.cfg", "/etc/ansible/ansible.cfg") if os.path.exists(os.path.expanduser(place))]
    usable = [os.path.expanduser(place) for place in places if not judge(os.path.expanduser(place))]
    os.environ.setdefault("ANSIBLE_CONFIG", usable[0] if usable else os.path.join(HERE, "ansible.cfg"))
    os.environ["ANSIBLE_COLLECTIONS_PATH"] = ":".join(map(os.path.dirname, docs.collection_folders()))


def main():
    # What is loaded stays: collecting it would find nothing, for a fifth of the time that loading takes.
    gc.disable()
    settle()
    asked = sys.argv[1:2]
    if asked in (["list"], ["find"], ["schema"]):
        wanted = sys.argv[sys.argv.index("--type") + 1] if "--type" in sys.argv else None
        lines = docs.listed() if asked == ["list"] else docs.find(wanted)
        if asked == ["schema"]:
            lines = [line["schema"] for line in lines if line["type"] == wanted]
        print("\n".join(map(json.dumps, lines)))
    else:
        module = Module()
        run(module)
        module.close()


if __name__ == "__main__":
    main()
