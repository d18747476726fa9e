"""Runs modules of Ansible as `ansible-playbook` does with a local connection: by their action, if they have one, with check mode and
diff; but each module in a child of this process, in which Ansible is loaded already, not in a new Python.
"""
import gc
import inspect
import json
import os
import re
import shutil
import stat
import sys
import tempfile

from adapter import Refused, judge
from ansible_child import PROFILE, Nursery
from stead_resource import Failed, Unsupported


class Ansible:
    """What is loaded once for all calls."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="stead-ansible-")
        self.nursery = Nursery()
        os.environ.update({"ANSIBLE_LOCAL_TEMP": self.folder.name, "ANSIBLE_REMOTE_TEMP": self.folder.name,
                           "ANSIBLE_PIPELINING": "True", "ANSIBLE_DEPRECATION_WARNINGS": "False", "ANSIBLE_NOCOLOR": "1"})
        from ansible import constants, context
        from ansible.module_utils.common.collections import ImmutableDict
        from ansible.modules.stat import format_output
        from ansible.parsing.dataloader import DataLoader
        from ansible.playbook.block import Block
        from ansible.playbook.play import Play
        from ansible.plugins import loader as plugins
        from ansible.plugins.action import ActionBase
        from ansible.template import Templar
        from ansible.utils.hashing import checksum as digest
        self.constants, self.context, self.plugins, self.Templar = constants, context, plugins, Templar
        if hasattr(plugins, "init_plugin_loader"):
            plugins.init_plugin_loader()
        self.context.CLIARGS = ImmutableDict(check=False, diff=True, verbosity=0)
        self.loader = DataLoader()
        self.play = Play().load({"name": "stead", "hosts": "localhost", "connection": "local", "gather_facts": False})
        self.block, self.facts, self.current = Block(play=self.play), {}, None
        original, look, of_remote = ActionBase._execute_module, ActionBase._find_needle, ActionBase._execute_remote_stat
        signature = inspect.signature(ActionBase._update_module_args).parameters

        def execute(action, module_name=None, module_args=None, tmp=None, task_vars=None, persist_files=False,
                    delete_remote_tmp=None, wrap_async=False, **more):
            name = module_name or action._task.action
            arguments = dict(action._task.args if module_args is None else module_args)
            path, code = self.module(name)
            if code is None:
                return original(action, module_name=module_name, module_args=module_args, task_vars=task_vars, **more)
            known = {name: value for name, value in more.items() if name in signature}
            action._update_module_args(name, arguments, task_vars or {}, **known)
            if name == "ansible.legacy.stat" and module_name:
                # What an action asks for itself; a program is run for each of the two.
                arguments = {"get_mime": False, "get_attributes": False, **arguments}
            return self.result(action, self.child(code, arguments))

        def find(action, dirname, needle):
            path = look(action, dirname, needle)
            why = (dirname == "templates" or action._task.action.endswith("script")) and judge(path)
            if why:
                raise Refused(why)
            return path

        def known(action, path, all_vars, follow, tmp=None, checksum=True):
            """What the module `stat` says of a file or a folder: actions ask for it, and here is where it is. Links are for the module."""
            place = os.path.join(self.current.directory, path)
            try:
                about = os.lstat(place)
            except FileNotFoundError:
                return {"exists": False, "checksum": "1"}
            except OSError:
                return of_remote(action, path, all_vars, follow, checksum=checksum)
            is_file = stat.S_ISREG(about.st_mode) and os.access(place, os.R_OK)
            if not is_file and not stat.S_ISDIR(about.st_mode):
                return of_remote(action, path, all_vars, follow, checksum=checksum)
            return {**format_output(None, path, about), "checksum": digest(place) if is_file and checksum else ""}

        def make(action, remote_user=None):
            action._connection._shell.tmpdir = tempfile.mkdtemp(prefix="ansible-tmp-", dir=self.folder.name)
            return action._connection._shell.tmpdir

        def remove(action, tmp_path, force=False):
            if tmp_path:
                shutil.rmtree(tmp_path, ignore_errors=True)
                action._connection._shell.tmpdir = None

        def permit(action, remote_paths, remote_user=None, execute=True):
            for path in remote_paths if execute else ():
                os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
            return remote_paths

        # The folder of a task is made and removed here, and its files may be run, not by shells.
        ActionBase._execute_module, ActionBase._find_needle = execute, find
        ActionBase._execute_remote_stat = known
        ActionBase._make_tmp_path, ActionBase._remove_tmp_path, ActionBase._fixup_perms2 = make, remove, permit
        gc.freeze()
        gc.enable()

    def module(self, name):
        """The file of a module, and its name as code; None instead of the name where it is none that Ansible runs as a script of its own."""
        found = self.plugins.module_loader.find_plugin_with_context(name, ".py")
        path = getattr(found, "plugin_resolved_path", None)
        if not found.resolved or not path:
            raise Unsupported(f"there is no module '{name}'")
        inner = re.search(r"/(ansible/modules|ansible_collections/\w+/\w+/plugins/modules)/(.+)\.py$", path)
        why = judge(path)
        if why:
            raise Refused(why)
        with open(path, "rb") as file:
            is_new = b"module_utils" in file.read()
        if os.geteuid() == 0 and not inner:
            raise Refused(f"'{name}' is not used as root: '{path}' is neither of Ansible nor of a collection")
        return path, inner and is_new and f"{inner[1]}/{inner[2]}".replace("/", ".") or None

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
        connection = self.plugins.connection_loader.get("ansible.legacy.local", context, os.devnull)
        connection.set_options(var_options=variables)
        connection._shell.set_options(var_options=variables)
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
        printed = self.nursery.run({"code": code, "text": text, "directory": self.current.directory}, self.current)
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
