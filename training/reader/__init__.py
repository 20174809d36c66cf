"""What the reader's adapter is trained on: forms of the quarantined model with the right replies.

    python -m training.reader.build OUT       packs of forms and replies, for training/delta/train.py

Texts are made by program from facts that are written by hand: what a fact is called, how it is asked for, and how a
text states it, in four languages. A text holds the fact that is asked for, or only facts that resemble it. Summaries,
drafts and judgements are made from messages that are written by hand together with what a summary keeps of them.
"""
