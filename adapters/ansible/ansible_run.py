"""Runs modules of Ansible as `ansible-playbook` does with a local connection: by their action, if they have one, with check mode and
diff; but each module in a child of this process, in which Ansible is loaded already, not in a new Python.
"""
import gc
import inspect
import json
import os
import re
import sys
import tempfile

import ansible_load
from adapter import Refused
from ansible_actions import answer_here
from ansible_child import PROFILE, ForkServer
from start import judge
from stead_resource import Failed, Unsupported


class Ansible:
    """What is loaded once for all calls."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="stead-ansible-")
        # The process that modules come from has it from here, and so is it loaded once.
        from ansible.module_utils import basic  # noqa: F401
        self.server = ForkServer()
        os.environ.update({"ANSIBLE_LOCAL_TEMP": self.folder.name, "ANSIBLE_REMOTE_TEMP": self.folder.name,
                           "ANSIBLE_PIPELINING": "True", "ANSIBLE_DEPRECATION_WARNINGS": "False", "ANSIBLE_NOCOLOR": "1"})
        ansible_load.quickly()
        from ansible import constants, context
        from ansible.module_utils.common.collections import ImmutableDict
        from ansible.parsing.dataloader import DataLoader
        from ansible.playbook.block import Block
        from ansible.playbook.play import Play
        from ansible.plugins import loader as plugins
        from ansible.plugins.action import ActionBase
        from ansible.template import Templar
        self.constants, self.context, self.plugins, self.Templar = constants, context, plugins, Templar
        if hasattr(plugins, "init_plugin_loader"):
            plugins.init_plugin_loader()
        self.context.CLIARGS = ImmutableDict(check=False, diff=True, verbosity=0)
        self.loader = DataLoader()
        self.play = Play().load({"name": "stead", "hosts": "localhost", "connection": "local", "gather_facts": False})
        self.block, self.facts, self.current = Block(play=self.play), {}, None
        self.modules, self.connection = {}, None
        answer_here(self, ActionBase)
        gc.freeze()
        gc.enable()

    def module(self, name):
        """The name of a module as code, or nothing where it is none that Ansible runs as a script of its own."""
        if name not in self.modules:
            found = self.plugins.module_loader.find_plugin_with_context(name, ".py")
            path = getattr(found, "plugin_resolved_path", None)
            if not found.resolved or not path:
                raise Unsupported(f"there is no module '{name}'")
            self.modules[name] = path, None, None
        path, mark, code = self.modules[name]
        why = judge(path)
        if why:
            raise Refused(why)
        if mark != os.stat(path).st_mtime_ns:
            self.modules[name] = path, os.stat(path).st_mtime_ns, self.code(name, path)
        return self.modules[name][2]

    def code(self, name, path):
        inner = re.search(r"/(ansible/modules|ansible_collections/\w+/\w+/plugins/modules)/(.+)\.py$", path)
        if os.geteuid() == 0 and not inner:
            raise Refused(f"'{name}' is not used as root: '{path}' is neither of Ansible nor of a collection")
        with open(path, "rb") as file:
            is_new = b"module_utils" in file.read()
        return inner and is_new and f"{inner[1]}/{inner[2]}".replace("/", ".") or None

    def call(self, name, arguments, call, check, hidden):
        """What a module returned."""
        from ansible.playbook.play_context import PlayContext
        from ansible.playbook.task import Task
        from ansible.utils.unsafe_proxy import wrap_var
        self.current = call
        self.loader.set_basedir(call.directory)
        # Nothing in a value is an expression, also where an action takes its options for conditions or names of variables.
        task = Task.load({name: wrap_var(dict(arguments))}, block=self.block, loader=self.loader)
        task.untemplated_args = task.args
        task.check_mode, task.diff = check, True
        task.no_log, task.async_val, task.environment, task.vars = hidden, 0, [], {}
        context = PlayContext(play=self.play)
        context.check_mode, context.diff, context.connection, context.remote_addr = check, True, "local", "localhost"
        action_name = re.sub(r"^ansible\.builtin\.", "ansible.legacy.", name)
        has_action = self.plugins.action_loader.has_plugin(action_name)
        variables = {"ansible_python_interpreter": sys.executable, "ansible_facts": dict(self.facts), "ansible_check_mode": check,
                     "ansible_diff_mode": True, "inventory_hostname": "localhost", "playbook_dir": call.directory}
        connection = self.connect(context, variables)
        templar = self.Templar(loader=self.loader, variables=variables)
        action = self.plugins.action_loader.get(
            action_name if has_action else "ansible.legacy.normal", task=task, connection=connection, play_context=context,
            loader=self.loader, templar=templar, shared_loader_obj=self.plugins)
        if name in ("ansible.builtin.service", "ansible.builtin.package") and not self.facts:
            self.learn(action, variables)
        try:
            return action.run(task_vars=variables)
        except Failed:
            raise
        except Exception as error:
            return self.of_exception(error)
        finally:
            action.cleanup()

    def connect(self, context, variables):
        """The connection to this machine, which is the same for all calls."""
        if self.connection is None:
            self.connection = self.plugins.connection_loader.get("ansible.legacy.local", context, os.devnull)
            self.connection.set_options(var_options=variables)
            self.connection._shell.set_options(var_options=variables)
        self.connection._play_context = context
        return self.connection

    def learn(self, action, variables):
        """Which program manages services and packages: the actions ask for it in each task otherwise."""
        asked = {"gather_subset": ["!all"], "filter": ["ansible_service_mgr", "ansible_pkg_mgr"]}
        check, action._task.check_mode = action._task.check_mode, False
        found = action._execute_module(module_name="ansible.legacy.setup", module_args=asked, task_vars=variables)
        action._task.check_mode = check
        self.facts = {name.replace("ansible_", "", 1): value for name, value in (found.get("ansible_facts") or {}).items()
                      if name in ("ansible_service_mgr", "ansible_pkg_mgr")}
        variables["ansible_facts"] = dict(self.facts)

    def of_exception(self, error):
        """Actions say by exceptions that they failed or were skipped."""
        from ansible.errors import AnsibleError
        if not isinstance(error, AnsibleError):
            raise error
        said = getattr(error, "result", None) or {}
        kind = "skipped" if type(error).__name__ == "AnsibleActionSkip" else "failed"
        return {"msg": str(error), **said, kind: True}

    def child(self, code, arguments):
        """Runs the code of a module in a process of its own, and returns what it printed."""
        from ansible.module_utils import basic
        if hasattr(basic, "_ANSIBLE_PROFILE"):
            from ansible.module_utils.common.json import Direction, get_module_encoder
            encoder = get_module_encoder(PROFILE, Direction.CONTROLLER_TO_MODULE)
        else:
            from ansible.module_utils.common.json import AnsibleJSONEncoder as encoder
        text = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}, cls=encoder)
        printed = self.server.run(code, text, self.current)
        return {**printed, "stdout_lines": printed["stdout"].splitlines(), "stderr_lines": printed["stderr"].splitlines()}

    def result(self, action, printed):
        """What a module returned, read as Ansible reads it."""
        from ansible.vars.clean import remove_internal_keys
        takes_profile = "profile" in inspect.signature(action._parse_returned_data).parameters
        data = action._parse_returned_data(printed, *([PROFILE] if takes_profile else []))
        data.pop("_ansible_suppress_tmpdir_delete", None)
        remove_internal_keys(data)
        for name in ("stdout", "stderr"):
            if name in data and name + "_lines" not in data:
                data[name + "_lines"] = (data.get(name) or "").splitlines()
        return data
