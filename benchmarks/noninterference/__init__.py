"""Noninterference, measured: random plans run in pairs of worlds that differ only in what must not matter.

Two worlds that differ in what strangers wrote must see the same unasked effects (integrity). Two worlds that differ in
what somebody may not read must look the same to him (confidentiality). What the proof calls proved must never be asked
about (soundness). `world` has the tools, `plans` writes the plans, `execution` runs them, `comparison` compares what
happened, `trial` does all of that for one plan, and `mutants` breaks the label rules to show that this is noticed.
"""
