"""Orchestration: how work is divided among several, and put together again."""
