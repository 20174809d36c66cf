"""Prints composed blocks as a corpus file, or how many of each kind there are."""

from __future__ import annotations

import argparse
from collections import Counter

from . import LANGUAGES, compose, plan_skeleton


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("count", type=int, help="how many blocks")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--languages", default=",".join(LANGUAGES), help="codes, separated by commas")
    arguments.add_argument("--counts", action="store_true", help="print only how many blocks each operation has")
    given = arguments.parse_args()
    made = compose(given.count, given.seed, given.languages.split(","))
    if given.counts:
        for (language, operation), number in sorted(Counter((each.language, each.operation) for each in made).items()):
            print(f"{language} {operation} {number}")
        phrasings = sum(len(each.phrasings) + len(each.sloppy) for each in made)
        plans = {each.plan for each in made}
        skeletons = {plan_skeleton(plan) for plan in plans}
        print(f"{len(made)} blocks, {phrasings} phrasings, {len(plans)} plans, {len(skeletons)} skeletons")
        return
    print("\n".join(each.as_text() for each in made), end="")


if __name__ == "__main__":
    main()
