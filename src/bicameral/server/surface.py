"""What another surface over the same server shares with its API: admission, limits, errors, and what it does with runs.

It needs the packages of the `server` extra.
"""

from bicameral.server._context import (
    HttpError as HttpError,
    RateLimiter as RateLimiter,
    ServerContext as ServerContext,
    json_bytes as json_bytes,
    public_error as public_error,
)
from bicameral.server._endpoints import (
    CheckedText as CheckedText,
    check_plan_text as check_plan_text,
    get_own_approval as get_own_approval,
)
from bicameral.server._guard import (
    AdmissionGuard as AdmissionGuard,
    client_name as client_name,
    require_role as require_role,
)
from bicameral.server._runs import (
    WatchResponse as WatchResponse,
    build_submission as build_submission,
    get_own_run as get_own_run,
    submit_run as submit_run,
)
from bicameral.server._schemas import (
    ID_PATTERN as ID_PATTERN,
    MAX_PLAN_CHARS as MAX_PLAN_CHARS,
    SubmitPlan as SubmitPlan,
    SubmitRequest as SubmitRequest,
)
