"""Work that takes several calls, and notes each."""


def run(hub, ctx, name: str, path: str, calls: int = 1, fails: int = 0):
    done = (ctx.get("rerun_data") or {}).get("done", 0) + 1
    if ctx.test:
        return {"name": name, "result": None, "comment": "it would work", "changes": {}}
    with open(path, "a+") as file:
        file.write(f"{name} {done}\n")
        file.seek(0)
        calls_so_far = file.read().count(f"{name} ")
    if calls_so_far <= fails:
        return {"name": name, "result": False, "comment": "it fails", "changes": {}}
    rest = {"rerun_data": {"done": done}} if done < calls else {}
    return {"name": name, "result": True, "comment": f"call {done}", "changes": {"new": {"done": done}}, **rest}
