"""Integration: how a model's wish becomes a call of something real."""
