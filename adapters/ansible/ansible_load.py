"""What Ansible does each time that it is loaded, and which costs more than a task: done once, or where it is needed."""
import datetime
import importlib
import json
import os
import sys

from ansible_docs import index, kept, save

# Texts that are as long as Ansible's lists of settings and of what has moved, in bytes, and how many of them are kept.
LONG, MOST = 1 << 15, 8


def quickly():
    """Has Ansible load so. It is called before anything that reads YAML or a vault."""
    keep_yaml()
    put_off_ciphers()


def keep_yaml():
    """Keeps what long texts of YAML say, by their digest: reading them again takes as long as five tasks."""
    from ansible.module_utils.common import yaml
    load, place = getattr(yaml, "yaml_load", None), index()
    if not (load and place):
        return
    yaml.yaml_load = Kept(load, os.path.join(place, "ansible-yaml.json"))
    try:
        # They read Ansible's own lists. What a filter reads later is the document's, and may be secret.
        import ansible.config.manager
        import ansible.utils.collection_loader._collection_meta
    finally:
        yaml.yaml_load = load


class Kept:
    """Reads YAML, or has it read."""

    def __init__(self, load, path):
        self.load, self.path, self.known = load, path, None

    def __call__(self, text, *more, **named):
        text = text.read() if hasattr(text, "read") else text
        if more or named or len(text) < LONG:
            return self.load(text, *more, **named)
        from hashlib import sha256
        digest = sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()
        if self.known is None:
            self.known = self.read()
        if digest not in self.known:
            value = self.load(text)
            if not is_kept(value):
                return value
            self.known[digest] = value
            save(self.path, dict(list(self.known.items())[-MOST:]), default=tagged)
        return self.known[digest]

    def read(self):
        return kept(self.path, object_hook=untagged)


def is_kept(value):
    """Whether JSON says of a value all that there is to say."""
    try:
        return json.loads(json.dumps(value, default=tagged), object_hook=untagged) == value
    except (TypeError, ValueError):
        return False


def tagged(value):
    if type(value) is datetime.date:
        return {"\0date": value.isoformat()}
    raise TypeError("JSON has no form for it")


def untagged(members):
    return datetime.date.fromisoformat(members["\0date"]) if "\0date" in members else members


def put_off_ciphers():
    """Has the module of vaults load its ciphers as a vault is opened. It takes them for missing until then."""
    if "cryptography" in sys.modules:
        return
    sys.modules["cryptography"] = None
    try:
        from ansible.parsing import vault
    finally:
        del sys.modules["cryptography"]
    begin = vault.VaultAES256.__init__

    def begin_with_ciphers(self, *arguments, **named):
        if not vault.HAS_CRYPTOGRAPHY:
            spec = importlib.util.spec_from_file_location(vault.__name__, vault.__file__)
            whole = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(whole)
            lacking = {name: value for name, value in vars(whole).items() if name not in vars(vault)}
            vars(vault).update(lacking, HAS_CRYPTOGRAPHY=whole.HAS_CRYPTOGRAPHY, CRYPTOGRAPHY_BACKEND=whole.CRYPTOGRAPHY_BACKEND)
        begin(self, *arguments, **named)

    vault.VaultAES256.__init__ = begin_with_ciphers
