"""A module that answers with what no module may say."""
import os
import sys

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: noise
short_description: Says nonsense
options:
  kind:
    description: What it says.
    type: str
    required: true
    choices: [nothing, nonsense, much, array, dies, lingers]
"""


def main():
    kind = AnsibleModule(argument_spec={"kind": {"type": "str", "required": True}}, supports_check_mode=True).params["kind"]
    if kind == "nonsense":
        sys.stdout.write("\0\x1b[31mnonsense {")
    elif kind == "array":
        sys.stdout.write("[1, 2]")
    elif kind == "much":
        for _ in range(40 << 10):
            sys.stdout.write("x" * 1024)
    elif kind == "dies":
        os.kill(os.getpid(), 9)
    elif kind == "lingers":
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "600"])
        sys.stdout.write('{"changed": false}')
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
