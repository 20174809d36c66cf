"""MCP servers, real and hostile, before a client directly and through `bicameral mcp firewall`.

`servers` has real servers from packages, each with a small world and a job. `attacks` has one module per type of
attack; each attack has servers of its own, which `attack_server` plays, a victim that obeys whatever it is shown
(`model`), and a benign twin: the same servers and the same client without the malice. `host` connects the victim with
the servers, directly or through the firewall, and `trial` judges by what happened in the world.
"""
