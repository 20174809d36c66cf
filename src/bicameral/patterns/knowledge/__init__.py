"""Knowledge: what a model is given to read, and what is kept of it."""
