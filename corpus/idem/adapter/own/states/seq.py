"""States that come to what their script says, a step for each call, and note each call."""
import json


def run(hub, ctx, name: str, path: str, script: list):
    with open(path, "a+") as file:
        file.seek(0)
        count = file.read().count(f"{name} call ") + 1
        data = ctx.get("rerun_data")
        test = " test" if ctx.test else ""
        file.write(f"{name} call {count}{test}" + (f" rerun_data={json.loads(json.dumps(data))}" if data else "") + "\n")
    step = script[min(count, len(script)) - 1]
    return {"name": name, "changes": {}, **{key: value for key, value in step.items() if value is not None or key == "result"}}


def mod_watch(hub, ctx, name: str, path: str, script: list):
    return {"name": name, "result": True, "comment": "", "changes": {}}
