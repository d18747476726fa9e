"""`seq` with a rule that fails."""


def run(hub, ctx, name: str, path: str, script: list):
    return hub.states.seq.run(ctx, name, path, script)


def is_pending(hub, ret, state: str = None, **pending_kwargs):
    raise RuntimeError("is_pending blew up")
