"""The modules of the Ansible that is installed, as resources: names, schemas and secrets, read from their files. No module is run.

A module documents its options in the text `DOCUMENTATION`, with fragments that several modules share, and declares in its code
which of them are `no_log`.
"""
import ast
import json
import os
import re
import stat
import sys

from adapter import warn
from start import judge, package

ADAPTER = "Ansible/Module"
BUILTIN = "ansible.builtin"
# A text or object that is secret comes as an object.
SECRET = {"propertyNames": {"enum": ["secureString", "secureObject"]}}
TYPES = {"bool": "boolean", "int": "integer", "float": "number", "list": "array", "dict": "object",
         "str": ["string", "number"], "path": "string", "bytes": ["string", "integer"], "bits": ["string", "integer"]}
# Declared with `no_log` so that the module does not log it; Ansible itself shows it, in its diff.
SHOWN = {("ansible.builtin", "copy"): {"content"}}
# Of a state: what a module returned, and what no option of it says.
READ_ONLY = {"result": {"type": "object", "readOnly": True, "description": "What the module returned"},
             "text": {"type": "string", "readOnly": True, "description": "The text that the module changes"},
             "drift": {"type": "array", "readOnly": True, "description": "What check mode leaves open"},
             "_exist": {"type": "boolean", "readOnly": True},
             "_inDesiredState": {"type": "boolean", "readOnly": True}}


def collection_folders():
    """The folders `ansible_collections`, the first counts: those of the variable of Ansible, or its usual ones, and of Python."""
    stated = os.environ.get("ANSIBLE_COLLECTIONS_PATH", "~/.ansible/collections:/usr/share/ansible/collections")
    places = [os.path.expanduser(place) for place in stated.split(":") if place] + sys.path
    folders = [os.path.join(place, "ansible_collections") for place in places if os.path.isabs(place)]
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder) and not judge(folder)]


def semantic(version):
    """A version of Python or Ansible as a semantic one."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(.*)", version or "")
    if not found:
        return "0.0.0"
    rest = re.sub(r"[^0-9A-Za-z]+", ".", found[4]).strip(".")
    return f"{found[1]}.{found[2]}.{found[3] or 0}" + (f"-{rest}" if rest else "")


def read(path):
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def kept(path, **more):
    """What was kept in a file; nothing of one that others can change, or of another form."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            is_own = stat.S_ISREG(about.st_mode) and about.st_uid in (0, os.geteuid()) and not about.st_mode & 0o022
            value = json.loads(file.read(), **more) if is_own else {}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def assigned(text, name):
    """The text that a file assigns to a name at the beginning of a line, or nothing."""
    found = re.search(rf"^{name}\s*=\s*(r?)('''|\"\"\")(.*?)\2", text, re.S | re.M)
    if found and (found[1] or "\\" not in found[3]):
        return found[3]
    try:
        for part in ast.parse(text).body:
            if isinstance(part, ast.Assign) and [target.id for target in part.targets if isinstance(target, ast.Name)] == [name]:
                return part.value.value if isinstance(part.value, ast.Constant) and isinstance(part.value.value, str) else None
    except SyntaxError:
        pass
    return None


def from_yaml(text):
    import yaml
    try:
        value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return {}
    return value if isinstance(value, dict) else {}


class Collection:
    """A collection, or what comes with Ansible itself."""

    def __init__(self, name, folder, version):
        self.name, self.folder, self.version = name, folder, semantic(version)

    def file(self, kind, name):
        """A file of the collection: a module, a fragment of documentation, a module util."""
        place = os.path.join(self.folder, "plugins", kind)
        if self.name == BUILTIN:
            place = os.path.join(self.folder, kind if kind != "doc_fragments" else "plugins/doc_fragments")
        return os.path.join(place, name + ".py")

    def modules(self):
        """The names of its modules."""
        try:
            files = sorted(os.listdir(os.path.dirname(self.file("modules", "x"))))
        except OSError:
            return []
        return [name[:-3] for name in files if re.fullmatch(r"[a-z0-9]\w*\.py", name, re.I) and name != "async_wrapper.py"]


def collections():
    """All that are installed, by name; what comes with Ansible first."""
    folder = package("ansible")
    if folder is None or judge(folder):
        return {}
    release = re.search(r"__version__ = '([^']+)'", read(os.path.join(folder, "release.py")))
    found = {BUILTIN: Collection(BUILTIN, folder, release and release[1])}
    for place in collection_folders():
        for space in sorted(os.listdir(place)):
            inner = os.path.join(place, space)
            for name in sorted(os.listdir(inner)) if os.path.isdir(inner) and space.isidentifier() else []:
                folder = os.path.join(inner, name)
                if os.path.isdir(os.path.join(folder, "plugins", "modules")) and not judge(folder):
                    found.setdefault(f"{space}.{name}", Collection(f"{space}.{name}", folder, version_of(folder)))
    return found


def version_of(folder):
    try:
        return json.loads(read(os.path.join(folder, "MANIFEST.json")))["collection_info"]["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Documentation:
    """Reads what modules say of themselves. What files have in common is read once."""

    def __init__(self, known):
        self.known, self.fragments, self.secrets = known, {}, {}

    def of(self, collection, name):
        """A line of the list."""
        path = collection.file("modules", name)
        text = read(path)
        said = from_yaml(assigned(text, "DOCUMENTATION") or "")
        options = self.options(said, collection)
        hidden = self.secret_names(path, text, collection, 2) - SHOWN.get((collection.name, name), set())
        more = {"description": sentence(said.get("short_description")),
                "schema": schema(options, hidden) if options is not None else {"type": "object", "properties": READ_ONLY}}
        if isinstance(said.get("deprecated"), dict):
            more["deprecationMessage"] = sentence(said["deprecated"].get("why")) or "the module is deprecated"
        return {**line(collection, name), **more}

    def options(self, said, collection):
        """The options with those of the fragments; those of the module itself count first. None if it says nothing of them."""
        if not said:
            return None
        options = dict(said.get("options") or {})
        fragments = said.get("extends_documentation_fragment") or []
        for name in fragments.split(",") if isinstance(fragments, str) else fragments:
            for option, about in (self.fragment(str(name).strip(), collection).get("options") or {}).items():
                options.setdefault(option, about)
        return options

    def fragment(self, name, collection):
        """`NAME`, `NAME.PART`, or either behind the name of a collection."""
        if (collection.name, name) in self.fragments:
            return self.fragments[collection.name, name]
        owner, _, rest = next(((known, ".", name[len(known) + 1:]) for known in self.known if name.startswith(known + ".")),
                              (BUILTIN, "", name))
        file, _, part = rest.partition(".")
        found = {}
        path = self.known[owner].file("doc_fragments", file)
        if os.path.isfile(path):
            for each in ast.walk(ast.parse(read(path))):
                if (isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)
                        and getattr(each.targets[0], "id", None) == (part or "DOCUMENTATION").upper()):
                    found = from_yaml(each.value.value)
        self.fragments[collection.name, name] = found
        return found

    def secret_names(self, path, text, collection, depth):
        """The names of options that are declared with `no_log`, here and in what is imported."""
        names = set(no_log_names(text))
        for imported in re.findall(r"^\s*from\s+(\S*module_utils\S*)\s+import", text, re.M) if depth else []:
            inner = self.imported(imported, collection)
            if inner and inner not in self.secrets:
                self.secrets[inner] = set()
                self.secrets[inner] = self.secret_names(inner, read(inner), collection, depth - 1)
            names |= self.secrets.get(inner, set())
        return names

    def imported(self, name, collection):
        """The file of a module util."""
        owner, _, rest = name.partition("module_utils")
        found = re.match(r"ansible_collections\.(\w+\.\w+)\.plugins\.$", owner)
        home = self.known.get(found[1] if found else BUILTIN if owner == "ansible." else collection.name)
        path = home and home.file("module_utils", rest.strip(".").replace(".", "/"))
        return path if path and os.path.isfile(path) else None


def line(collection, name):
    """What is known of a module without its file."""
    return {"type": f"Ansible.{collection.name}/{name}", "kind": "resource", "version": collection.version,
            "capabilities": ["get", "test"] if only_reads(name) else ["get", "test", "set", "setWhatIf"], "requireAdapter": ADAPTER}


def no_log_names(text):
    """Options that a file declares as `name=dict(.., no_log=True)` or `'name': {.., 'no_log': True}`."""
    if "no_log" not in text:
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        for name, value in members(node):
            if any(inner == "no_log" and getattr(truth, "value", False) is True for inner, truth in members(value)):
                yield name


def members(node):
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "dict":
        return [(each.arg, each.value) for each in node.keywords if each.arg]
    if isinstance(node, ast.Dict):
        return [(key.value, value) for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)]
    return []


def only_reads(name):
    """Modules of facts return something, and change nothing."""
    return name.endswith(("_info", "_facts")) or name in ("stat", "find", "slurp", "setup", "getent", "ping")


def sentence(text):
    """The first sentence of a description, without the marks of Ansible's documentation."""
    text = text[0] if isinstance(text, list) and text else text
    if not isinstance(text, str):
        return ""
    text = re.sub(r"\b[A-Z]\(([^()]*?)(?:,[^()]*)?\)", r"\1", " ".join(text.split()))
    return re.split(r"(?<=[a-z)`'\"])\.(?:\s|$)", text, maxsplit=1)[0].rstrip(".")


def schema(options, hidden):
    """The JSON Schema of options."""
    made = shape(options, hidden)
    made["properties"] = {**{name: about for name, about in READ_ONLY.items() if name not in made["properties"]}, **made["properties"]}
    return made


def shape(options, hidden):
    properties, required, alternatives = {}, [], []
    for name, about in options.items():
        name, about = str(name), about if isinstance(about, dict) else {}
        aliases = [str(alias) for alias in about.get("aliases") or []]
        properties[name] = option(name, about, hidden)
        for alias in aliases:
            properties.setdefault(alias, {**properties[name], "description": f"Another name of '{name}'"})
        if about.get("required") is True:
            (alternatives.append([{"required": [each]} for each in [name, *aliases]]) if aliases else required.append(name))
    made = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        made["required"] = required
    if alternatives:
        made["allOf"] = [{"anyOf": each} for each in alternatives]
    return made


def option(name, about, hidden):
    kind = about.get("type", "str")
    made = {"type": TYPES[kind]} if kind in TYPES else {}
    inner = about.get("suboptions")
    if kind == "list":
        element = about.get("elements")
        made["items"] = ({"type": TYPES[element]} if element in TYPES else {})
        if isinstance(inner, dict) and element == "dict":
            made["items"] = shape(inner, hidden)
        # Ansible takes one value for a list of one.
        made = {"anyOf": [made, made["items"]]} if made["items"] and element != "list" else {}
    elif isinstance(inner, dict) and kind == "dict":
        made = shape(inner, hidden)
    choices = about.get("choices")
    if choices and kind in ("str", "int"):
        made = {"enum": list(choices)}
    elif kind in ("str", "path"):
        made = {"type": [*([made["type"]] if kind == "path" else made["type"]), "object"], **SECRET}
    if name in hidden:
        made.update({"format": "password", "writeOnly": True})
    made["description"] = sentence(about.get("description"))
    if isinstance(about.get("default"), (str, int, float, bool)):
        made["default"] = about["default"]
    return made


def index():
    """The folder in which lists are kept, or nothing."""
    if os.geteuid() == 0:
        place = "/var/cache/stead"
    else:
        place = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stead")
    try:
        os.makedirs(place, 0o700, exist_ok=True)
        return None if judge(place) else place
    except OSError:
        return None


def listed():
    """The lines of all modules. Of other collections, which may be thousands, there are names alone: their files are not read."""
    lines = found(BUILTIN, None)
    for collection in collections().values():
        if collection.name != BUILTIN:
            lines += [line(collection, name) for name in collection.modules()]
    return lines


def find(type_name):
    """The line of one module; with those of all others that come with Ansible, if it is one of them."""
    kind = re.fullmatch(r"Ansible\.(\w+\.\w+)/(\w+)", type_name, re.I)
    return found(kind[1].lower(), kind[2].lower()) if kind else []


def found(owner, wanted):
    """The lines of a collection. What is known of a file is kept until it changes."""
    known = collections()
    if owner not in known:
        return []
    collection, place = known[owner], index()
    path = place and os.path.join(place, f"ansible-{owner}.json")
    known_files = {file: line for file, line in kept(path).items() if isinstance(line, list) and len(line) == 2} if path else {}
    documentation, lines, fresh = Documentation(known), {}, False
    for name in [name for name in collection.modules() if owner == BUILTIN or name.lower() == wanted]:
        file = collection.file("modules", name)
        about = os.stat(file)
        mark = [about.st_mtime_ns, about.st_size, collection.version]
        if known_files.get(file, [None])[0] != mark:
            try:
                known_files[file], fresh = [mark, documentation.of(collection, name)], True
            except (OSError, ValueError, SyntaxError, RecursionError, AttributeError, TypeError) as error:
                warn(f"the documentation of '{owner}.{name}' cannot be read: {error}")
                continue
        lines[file] = known_files[file][1]
    if path and fresh:
        save(path, {file: known_files[file] for file in known_files if os.path.exists(file)})
    return list(lines.values())


def save(path, kept, **more):
    """Replaces the file as a whole: who else lists meanwhile reads the former one or this one."""
    try:
        descriptor = os.open(f"{path}.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w") as file:
            json.dump(kept, file, **more)
        os.replace(f"{path}.{os.getpid()}", path)
    except OSError:
        pass
