"""Things that are kept as files: a state that looks, changes and removes."""
import base64
import json
import os

__contracts__ = ["resource"]


def _read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except OSError:
        return None


async def present(hub, ctx, name: str, path: str, color: str = None, size: int = 1, token: str = None):
    old = _read(path)
    new = {**(old or {}), "name": name, "size": size, "resource_id": "id-" + name}
    if color is not None:
        new["color"] = color
    if not ctx.test and new != old:
        with open(path, "w") as file:
            json.dump(new, file)
    said = {"token": token, "encoded": base64.b64encode(token.encode()).decode(), "reversed": token[::-1]} if token else {}
    comment = ["as stated", *said.values()]
    for text in said.values():
        hub.log.error(text)
    if (token or "").startswith("fail"):
        return {"name": name, "result": False, "comment": comment[:3], "old_state": old, "new_state": old}
    return {"name": name, "result": True, "comment": comment, "old_state": old, "new_state": {**new, **said}}


async def absent(hub, ctx, name: str, path: str):
    old = _read(path)
    if old is not None and not ctx.test:
        os.remove(path)
    return {"name": name, "result": True, "comment": "gone", "old_state": old, "new_state": None}


async def describe(hub, ctx):
    return {}
