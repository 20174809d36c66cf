"""Boundary: typed extraction from untrusted text, and the privileged view of results.

Input is a text, an instruction and a type. Output is a value of that type (`Filled`), a report that the text does not
contain it (`NotFound`), or a typed refusal (`Rejected`). The quarantined model sees neither the goal nor the tools, and
its reply is parsed strictly: nothing is coerced. `Extractor` asks the model; `ReadOnlyExecutor` and `ValidatedExecutor`
wrap another executor. `privileged_view` passes bounded scalars by value and everything else as a `Handle`.
"""

from bicameral.boundary._extract import (
    MAX_SOURCE as MAX_SOURCE,
    MAX_TRIES as MAX_TRIES,
    Executor as Executor,
    ExecutorFacts as ExecutorFacts,
    ExecutorVariant as ExecutorVariant,
    Extractor as Extractor,
    executor_facts as executor_facts,
)
from bicameral.boundary._form import MAX_OUTPUT_TOKENS as MAX_OUTPUT_TOKENS
from bicameral.boundary._privileged_view import (
    BoundaryError as BoundaryError,
    Handle as Handle,
    HandleContent as HandleContent,
    HandleTable as HandleTable,
    ViewLevel as ViewLevel,
    privileged_view as privileged_view,
)
from bicameral.boundary._relevance import (
    PlaceText as PlaceText,
    Question as Question,
    find_rival as find_rival,
    missing_words as missing_words,
    parse_question as parse_question,
)
from bicameral.boundary._reply import (
    Alert as Alert,
    AlertKind as AlertKind,
    ExtractionOutcome as ExtractionOutcome,
    Filled as Filled,
    NotFound as NotFound,
    Rejected as Rejected,
    RejectionKind as RejectionKind,
    Verdict as Verdict,
    parse_reply as parse_reply,
)
from bicameral.boundary._support import (
    MAX_FACTS as MAX_FACTS,
    Fact as Fact,
    SupportKind as SupportKind,
    find_facts as find_facts,
    find_line as find_line,
    find_quote as find_quote,
    find_support as find_support,
)
from bicameral.boundary._variants import (
    ModelValidator as ModelValidator,
    ReadDesk as ReadDesk,
    ReadOnlyExecutor as ReadOnlyExecutor,
    RuleValidator as RuleValidator,
    ValidatedExecutor as ValidatedExecutor,
    Validator as Validator,
    ValidatorDoubt as ValidatorDoubt,
)
from bicameral.boundary._verbatim_check import COPIED_TYPES as COPIED_TYPES

from .shield import Mark as Mark, screen as screen
