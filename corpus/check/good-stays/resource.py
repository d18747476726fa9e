import json, os, sys


def answer(method, desired):
    """The state of a file of one line."""
    there = os.path.exists(desired["path"])
    state = {"path": desired["path"], "text": open(desired["path"]).read() if there else ""}
    if method == "set":
        with open(desired["path"], "w") as file:
            file.write(desired["text"])
        return {"after": {**desired}}
    verdict = state["text"] == desired["text"]
    return {"actual": state, "inDesiredState": verdict} if method == "test" else {"actual": state}


if sys.argv[1] != "resident":
    answered = answer(sys.argv[1], json.load(sys.stdin))
    state = answered.get("after") or answered["actual"]
    if "inDesiredState" in answered:
        state["_inDesiredState"] = answered["inDesiredState"]
    if sys.argv[1] == "get":
        state["text"] += ""
    print(json.dumps(state))
    sys.exit()
for line in sys.stdin:
    request = json.loads(line)
    greets = request["method"] == "initialize"
    result = {"protocol": 1} if greets else answer(request["method"], request["params"]["properties"])
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
