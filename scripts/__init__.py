"""What maintainers run: it keeps published files in step with the code."""
