"""The check of plans: types, names, effects and cost, before anything runs.

A plan and a registry of tools come in; out goes a `Report` of findings, each with a place and a fix, the effects, and
the calls that the plan makes at worst. A plan with an error does not run.
"""
