"""A state that is present once it was called, and notes each call."""
__contracts__ = ["resource"]


def present(hub, ctx, name: str, path: str, size: int):
    with open(path, "a+") as file:
        file.seek(0)
        is_there = f"{name} present\n" in file.read()
        file.write(f"{name} present{' test' if ctx.test else ''}\n")
    new = {"name": name, "size": size}
    return {"name": name, "result": True, "comment": "", "old_state": new if is_there else None, "new_state": new}


def absent(hub, ctx, name: str, path: str):
    return {"name": name, "result": True, "comment": "", "old_state": None, "new_state": None}


async def describe(hub, ctx):
    return {}
