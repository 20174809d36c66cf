"""What a pattern changes: the same cases with it and without it, with a 95 % interval of the difference."""
