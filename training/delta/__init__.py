"""What the planner's adapter is trained on: a corpus of requests with their plans, and the way from it to an adapter.

    python -m training.delta.check            every plan of the corpus against the planner's own checker and grammar
    python -m training.delta.build OUT        the corpus as prompts and plans
    python -m training.delta.train …          the adapter (needs a GPU and PyTorch)
    python -m training.delta.convert …        the adapter as a GGUF file

No request of `benchmarks/planning` is in the corpus, and no file of its world: the check holds the two apart.
"""
