"""Syntax of plans: text in a small subset of Python becomes a plan and is printed back.

Text comes in by `parse`, and task lists by `import_tasks`; out go plans, their text (`print_plan`), their published
JSON Schema, and errors with the place in the text. Parsing knows tools only by their names and arguments: whether a
plan makes sense is for `bicameral.plans.check`.
"""
