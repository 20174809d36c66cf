"""Attacks by someone who has read the code, each with a benign twin that must still work.

`case` has the shape of an attack and tries one with its twin, `attacks` holds one module per family. The same cases are
tests (`tests/benchmarks/test_benchmarks_redteam.py`) and a figure (`python -m benchmarks.redteam`).
"""
