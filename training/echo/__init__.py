"""What Echo's adapter is trained on: requests with what is to be understood from them.

    python -m training.echo.check             every block against Echo's own schema and its rules
    python -m training.echo.build OUT         packs of requests and replies, for training/delta/train.py

Most of it is derived from the planner's corpus: a plan says which steps, constraints and output its request has, and a
plan that asks says what is open. The rest is written by hand: unclear, sloppy, rambling and incomplete requests.
"""
