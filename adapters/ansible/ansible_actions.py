"""What the actions of Ansible ask of the machine, and have done on it. They do so by modules and shells, for it may be another one; here it
is this one.
"""
import inspect
import os
import shutil
import stat
import tempfile

from adapter import Refused
from start import judge

# What is at a path, where it is not seen as a module would see it.
ASK = object()


def answer_here(ansible, ActionBase):
    """Has actions ask here, for the calls of an `Ansible`."""
    from ansible.modules.file import execute_diff_peek as is_binary
    from ansible.modules.stat import format_output
    from ansible.utils.hashing import checksum as digest
    original, look, of_remote = ActionBase._execute_module, ActionBase._find_needle, ActionBase._execute_remote_stat
    signature = inspect.signature(ActionBase._update_module_args).parameters

    def execute(action, module_name=None, module_args=None, tmp=None, task_vars=None, persist_files=False,
                delete_remote_tmp=None, wrap_async=False, **more):
        name = module_name or action._task.action
        arguments = dict(action._task.args if module_args is None else module_args)
        if name == "ansible.legacy.file" and set(arguments) == {"path", "_diff_peek"}:
            about = at(arguments["path"], ansible.current)
            if about is not ASK:
                return peek(arguments["path"], about)
        code = ansible.module(name)
        if code is None:
            return original(action, module_name=module_name, module_args=module_args, task_vars=task_vars, **more)
        known = {name: value for name, value in more.items() if name in signature}
        action._update_module_args(name, arguments, task_vars or {}, **known)
        if name == "ansible.legacy.stat" and module_name:
            # What an action asks for itself; a program is run for each of the two.
            arguments = {"get_mime": False, "get_attributes": False, **arguments}
        return ansible.result(action, ansible.child(code, arguments))

    def peek(path, about):
        """What the module `file` says to an action that is about to show a difference."""
        if about is None:
            return {"path": path, "changed": False, "state": "absent", "appears_binary": False}
        is_file = stat.S_ISREG(about.st_mode)
        return {"path": path, "changed": False, "state": "file" if is_file else "directory", "size": about.st_size,
                "appears_binary": is_file and is_binary(ansible.current.path(path))}

    def known(action, path, all_vars, follow, tmp=None, checksum=True):
        """What the module `stat` says."""
        about = at(path, ansible.current)
        if about is ASK:
            return of_remote(action, path, all_vars, follow, checksum=checksum)
        if about is None:
            return {"exists": False, "checksum": "1"}
        has_digest = checksum and stat.S_ISREG(about.st_mode)
        return {**format_output(None, path, about), "checksum": digest(ansible.current.path(path)) if has_digest else ""}

    def find(action, dirname, needle):
        path = look(action, dirname, needle)
        why = (dirname == "templates" or action._task.action.endswith("script")) and judge(path)
        if why:
            raise Refused(why)
        return path

    def make(action, remote_user=None):
        action._connection._shell.tmpdir = tempfile.mkdtemp(prefix="ansible-tmp-", dir=ansible.folder.name)
        return action._connection._shell.tmpdir

    def remove(action, tmp_path, force=False):
        if tmp_path:
            shutil.rmtree(tmp_path, ignore_errors=True)
            action._connection._shell.tmpdir = None

    def permit(action, remote_paths, remote_user=None, execute=True):
        for path in remote_paths if execute else ():
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return remote_paths

    ActionBase._execute_module, ActionBase._find_needle, ActionBase._execute_remote_stat = execute, find, known
    ActionBase._make_tmp_path, ActionBase._remove_tmp_path, ActionBase._fixup_perms2 = make, remove, permit


def at(path, call):
    """What is at a path: a file that can be read, a folder, or nothing. Links, and names of variables in the path, are for the module."""
    if "$" in path or path.startswith("~"):
        return ASK
    try:
        about = os.lstat(call.path(path))
    except FileNotFoundError:
        return None
    except OSError:
        return ASK
    is_read = stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode) and os.access(call.path(path), os.R_OK)
    return about if is_read else ASK
