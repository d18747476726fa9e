"""A module that is given a secret, and says it again in everything that it can."""
import base64

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: vault
short_description: Keeps a token
options:
  path:
    description: The file that it is kept in.
    type: path
    required: true
  token:
    description: The token.
    type: str
  note:
    description: Anything.
    type: str
"""


def main():
    spec = {"path": {"type": "path", "required": True}, "token": dict(type="str", no_log=True), "note": {"type": "str"}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    said = module.params["token"] or module.params["note"] or ""
    module.warn("the token is " + said)
    diff = {"before": "", "after": said + "\n"}
    encoded = base64.b64encode(said.encode()).decode()
    if said.startswith("fail"):
        module.fail_json(msg="cannot keep " + said + " or " + encoded, said=said)
    module.exit_json(changed=True, diff=diff, token=said, encoded=encoded, reversed=said[::-1])


if __name__ == "__main__":
    main()
