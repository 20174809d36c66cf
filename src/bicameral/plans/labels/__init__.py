"""Label analysis of plans: which labels each value has, and the proof of what policy will say of each call.

A plan, the registry and a policy come in; out goes a `Proof`. The proof walks all ways through a plan and the run takes
one of them, with the same functions: what is proved of a call holds when it is made.
"""
