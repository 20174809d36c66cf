"""The attacks, one module per type."""
