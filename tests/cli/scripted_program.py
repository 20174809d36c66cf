"""`bicameral`, for a test that starts it as a process: its privileged model replies what a script says.

SCRIPTED_REPLIES is a JSON list of replies, one for each call of the privileged model, in order.
"""

from __future__ import annotations

import json
import os

from cli_world import scripted

if __name__ == "__main__":
    from bicameral.cli import main

    main(obj=scripted(json.loads(os.environ["SCRIPTED_REPLIES"])))
