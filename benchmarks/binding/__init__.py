"""How well words are bound to names: generated worlds with near-misses, duplicates, other languages, hostile names."""
