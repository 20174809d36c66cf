"""Binding: words of a request become names of the world, outside every privileged model, or a question.

A kind and the user's words come in ("file", "the bills of 2026"); a `Binding` comes out, with the value, the label of
its candidates and the rule that decided, or a `Question` with candidates that are safe to show. A `CandidateSource`
offers what there is, `match_words` is the ladder of rules, and a `Chooser` is asked only where the ladder does not
decide; an `Encoder` may add names of near meaning to what it is asked about, and a `Use` what has all that a plan uses
of it. Names of files, columns, people, events and mails are untrusted: suspicious ones are never bound without a
person.
"""

from bicameral.binding._binder import (
    Binder as Binder,
    Chooser as Chooser,
    Ranking as Ranking,
    Use as Use,
    Within as Within,
)
from bicameral.binding._candidates import (
    KINDS as KINDS,
    Candidate as Candidate,
    CandidateSource as CandidateSource,
    FixedSource as FixedSource,
    Kind as Kind,
    SourceLimits as SourceLimits,
)
from bicameral.binding._choosers import ModelChooser as ModelChooser, PersonChooser as PersonChooser
from bicameral.binding._matching import (
    Ambiguous as Ambiguous,
    Bound as Bound,
    How as How,
    Match as Match,
    Unbound as Unbound,
    match_words as match_words,
)
from bicameral.binding._meaning import (
    Encoded as Encoded,
    Encoder as Encoder,
    LocalEncoder as LocalEncoder,
    suggest_candidates as suggest_candidates,
)
from bicameral.binding._other_readings import OtherReading as OtherReading, search_statement as search_statement
from bicameral.binding._plan_binding import (
    PlanBinder as PlanBinder,
    PlanBinding as PlanBinding,
    bind_by_rules as bind_by_rules,
    binding_doubts as binding_doubts,
    planning_doubts as planning_doubts,
)
from bicameral.binding._questions import (
    NONE_FITS as NONE_FITS,
    Binding as Binding,
    Question as Question,
    ShownCandidate as ShownCandidate,
    show_candidate as show_candidate,
)
from bicameral.binding._screening import (
    SUSPICIONS as SUSPICIONS,
    Suspicion as Suspicion,
    candidate_suspicions as candidate_suspicions,
    display_name as display_name,
    name_suspicions as name_suspicions,
)
from bicameral.binding._world_source import WorldSource as WorldSource
from bicameral.errors import BindError as BindError
