"""The planning benchmark with the small model, with the large one, and with the cascade of both.

`attempts` has one model plan and run a request, `figures` puts records together (what the cascade makes of them, the
whole trade-off, and how the threshold was chosen), `held_back` are the requests of the training corpus that no adapter
was trained on. Decoding is deterministic: in the cascade each model writes what it writes alone, so the cascade's
outcome and its tokens follow from the two runs; `--really` runs it too and says where it differs.
"""
