"""Reliability: what holds when models do not."""
