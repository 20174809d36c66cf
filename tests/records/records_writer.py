"""A process that writes to a store: adds facts until it is killed, or counts one up.

python records_writer.py add PLACE
python records_writer.py count PLACE TIMES
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from pathlib import Path

from bicameral.errors import RecordError
from bicameral.labels import from_user, open_labelled

sys.path.insert(0, str(Path(__file__).parent))
from records_world import Fact, facts, own

if __name__ == "__main__":
    what, place = sys.argv[1:3]
    with facts(place if "://" in place else Path(place)) as store:
        if what == "add":
            for number in itertools.count():
                print(store.add(own("x" * 2_000, number), author="writer").id, flush=True)
        done = 0
        while done < int(sys.argv[3]):
            record = store.get("counter")
            value = open_labelled(record.value)
            try:
                store.revise(record, from_user(replace(value, people=value.people + 1)), author="writer")
                done += 1
            except RecordError as error:
                if error.code != "records.conflict":
                    raise
        assert isinstance(open_labelled(store.get("counter").value), Fact)
