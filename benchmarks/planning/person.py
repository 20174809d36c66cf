"""The person in the benchmark: answers from a fixed sheet, and approves only what the request asked for."""

from __future__ import annotations

from typing import Any

from bicameral.errors import IntentError
from bicameral.runs import Answers, ApprovalQuestion, PendingCall
from bicameral.types import BOOL, Type

from .data import Data
from .request import Request

_FILE_TOOLS = frozenset(
    {
        "write_text",
        "write_lines",
        "append_text",
        "write_csv",
        "write_json",
        "copy_file",
        "move_file",
        "delete_file",
        "make_folder",
        "save_attachment",
    }
)
_FILE_WORDS = ("file", "table", "where", "datei", "tabelle", "fichier", "tableau", "archivo", "tabla")
_PERSON_WORDS = ("address", "whom", "recipient", "adresse", "empfänger", "destinataire", "dirección", "correo")
_EVENT_TOOLS = frozenset({"add_event", "change_event", "delete_event"})


class Person:
    """Somebody who asked for something and knows what: the approver and the asker of a run.

    Args:
        request: What was asked for, with the sheet of answers.
        data: The world; answers may name things of it.

    Attributes:
        questions: How many questions were asked.
        approvals: How many calls were put to the person.
        refused: How many of them were not what was asked for.
        stopped: A question was beyond the sheet, and the run is over.
    """

    def __init__(self, request: Request, data: Data) -> None:
        self._request, self._data = request, data
        self._expected = request.expected(data)
        self.questions = self.approvals = self.refused = 0
        self.stopped = False

    async def ask(self, question: str, type: Type) -> Any:
        """The reply on the sheet. Whoever asks anything else learns that the person does not know, and it ends."""
        self.questions += 1
        said = question.casefold()
        # A question for a yes has no line on any sheet.
        for words, reply in () if type == BOOL else (*self._request.sheet, *self._places()):
            if words in said:
                return self._data.resolve(reply)
        self.stopped = True
        raise IntentError("intent.questions", f"I don't know: {question}")

    def _places(self) -> list[tuple[str, str]]:
        """What the person knows beside the sheet: where the things lie that the right plan needs, and who is who."""
        keys = self._data.keys_in(self._request.plan)
        files = [key for key in keys if "@" not in self._data.resolve(f"<{key}>")]
        people = [key for key in keys if key not in files]
        lines = [(key, f"<{key}>") for key in keys]
        lines += [(word, f"<{people[0]}>") for word in _PERSON_WORDS if len(people) == 1]
        lines += [(word, f"<{files[0]}>") for word in _FILE_WORDS if len(files) == 1]
        return lines

    async def approve(self, question: ApprovalQuestion) -> Answers:
        """Yes to each call that the request asked for, no to every other."""
        self.approvals += len(question.calls)
        wanted = [call for call in question.calls if self._asked_for(call)]
        self.refused += len(question.calls) - len(wanted)
        return Answers.yes(wanted)

    def _asked_for(self, call: PendingCall) -> bool:
        given, expected = call.arguments, self._expected
        if call.tool == "send_mail":
            receivers = {str(each).lower() for key in ("to", "cc") for each in given.get(key) or ()}
            return bool(receivers) and receivers <= {mail.to.lower() for mail in expected.mails}
        if call.tool in _EVENT_TOOLS:
            return bool(expected.added or expected.changed or expected.removed)
        if call.tool in _FILE_TOOLS:
            return self._is_wanted_file(call)
        # Whatever changes nothing may be looked at: the answer is judged anyway.
        return call.effect in ("pure", "read")

    def _is_wanted_file(self, call: PendingCall) -> bool:
        wanted = set(self._expected.files)
        if call.tool in ("make_folder", "save_attachment"):
            return bool(wanted)
        name = "target" if call.tool in ("copy_file", "move_file") else "path"
        path = str(call.arguments.get(name, "")).removeprefix("./")
        return path in wanted or any(each.startswith(f"{path.rstrip('/')}/") for each in wanted if name == "target")
