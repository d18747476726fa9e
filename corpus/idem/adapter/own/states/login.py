"""Something that is done with credentials, and notes whose they were."""
ACCT = ["vendor"]


def run(hub, ctx, name: str, path: str):
    user = (ctx.get("acct") or {}).get("user")
    if not ctx.test:
        with open(path, "a") as file:
            file.write(f"{name} as {user}\n")
    return {"name": name, "result": True, "comment": f"as {user}", "changes": {}}
