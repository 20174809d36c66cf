"""Reasoning: how models and tools come to an answer together."""
