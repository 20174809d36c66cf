"""A page for each pattern of the catalogue, in `docs/patterns`: diagram, knobs, invariants, figures, code."""
