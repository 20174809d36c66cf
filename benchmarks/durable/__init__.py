"""What durable runs cost: a step against a bare step of DBOS, runs in a second, and runs that wait for a person.

Run it with `python -m benchmarks.durable`. Everything goes through real databases (a SQLite file, and a PostgreSQL that
is started for this) and, where it says workers, through real worker processes.
"""
