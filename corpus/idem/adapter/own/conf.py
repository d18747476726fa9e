DYNE = {"states": ["states"]}
