"""Evaluation of expressions: values, the closed library of functions, and compiled code.

An expression comes in, and out goes a function of the variables. Evaluation is pure and total: it gives a value or an
`EvaluationError`, within bounds on size and work, and calls no tool and no model.
"""
