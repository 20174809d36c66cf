"""Durable runs in a storm: workers that are killed, connections that are cut, and a world that keeps the books.

`world` is what the tools read and change: a server in a process of its own that is never killed, with a ledger of every
effect it was asked for and of every one it accepted. `plans` are the runs, `expected` is what each of them must come to
(computed beforehand by the inline engine), `storm` starts real workers and kills them, `clerk` answers from another
process what the runs ask, and `judge` holds what happened against what was to happen. Run it with
`python -m benchmarks.chaos`.
"""
