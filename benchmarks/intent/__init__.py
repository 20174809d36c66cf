"""How much of a request is understood: its steps, what it mentions, where the result goes, and what it leaves open.

    python -m benchmarks.intent --model none        the rules alone
    python -m benchmarks.intent --model 1.5b        with Echo's model

The requests are in four languages; more than a third of them leave something open. They are in no corpus, and every
second one has a structure that the build of the training data refuses.
"""

from ._judge import Judged as Judged, judge as judge, summarise as summarise
from ._requests import (
    ExpectedStep as ExpectedStep,
    IntentRequest as IntentRequest,
    load_requests as load_requests,
    reserved_skeletons as reserved_skeletons,
)
