import json, os, sys

operation = sys.argv[1]
if operation == "list":
    print(json.dumps({"type": "Adapted/Line", "kind": "resource", "version": "1.0.0", "capabilities": ["get", "set", "test"], "requireAdapter": "Check/AdapterAnswersForTheFirst",
                      "schema": {"type": "object", "additionalProperties": False, "required": ["path"], "properties": {
                          "path": {"type": "string"}, "text": {"type": "string"}, "_inDesiredState": {"type": "boolean"}}}}))
    sys.exit()
asked = json.load(sys.stdin)["resources"]
if operation == "validate":
    print(json.dumps({"valid": True}))
    sys.exit()
result = []
for one in asked[:1]:
    desired = one["properties"]
    if operation == "set":
        with open(desired["path"], "w") as file:
            file.write(desired["text"])
    text = open(desired["path"]).read() if os.path.exists(desired["path"]) else ""
    state = {"path": desired["path"], "text": text}
    if operation == "test":
        state["_inDesiredState"] = text == desired["text"]
    result.append({"name": one["name"], "type": one["type"], "properties": state})
print(json.dumps({"result": result}))
