"""A state that returns what no state returns."""
import os


def run(hub, ctx, name: str, kind: str):
    if ctx.test:
        return {"name": name, "result": None, "comment": "", "changes": {}}
    if kind == "raises":
        raise ValueError("\x1b[31mnonsense")
    if kind == "ends":
        os._exit(3)
    if kind == "prints":
        print("x" * (32 << 20))
        return {"name": name, "result": True, "comment": "", "changes": {}}
    return {"nothing": None, "list": [1, 2], "bare": {"name": name}, "much": {"result": False, "comment": "x" * (32 << 20)}}[kind]
