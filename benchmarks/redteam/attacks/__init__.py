"""The families of attacks: one module each, with a `Family` named `attacks`."""
