"""A module without check mode."""
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: blunt
short_description: Writes a file, and does not say beforehand what it would do
options:
  path:
    description: The file.
    type: path
    required: true
"""


def main():
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}})
    with open(module.params["path"], "a") as file:
        file.write("again\n")
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
