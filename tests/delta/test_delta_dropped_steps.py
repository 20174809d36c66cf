"""A step that nobody asked for is dropped, and no answer tells that it was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bicameral import Agent, Config
from bicameral.errors import BicameralError
from bicameral.models import ScriptedProvider
from bicameral.planning import Delta, Intent, UnaskedEffectError
from bicameral.planning._claims import HOLE, may_claim
from bicameral.plans import parse, print_plan
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes
from bicameral.types import Type

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
READ = 'lines = read_lines("notes.txt")\n'
WRITE = 'write_text("count.txt", str(len(lines)))\n'
SEND = 'send_mail(["kim@example.com"], "Lines", str(len(lines)))\n'
INTENT = Intent(request="The lines of notes.txt for Kim")


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "notes.txt").write_text("a\nb\n")
    return load_toolboxes({name: {} for name in STANDARD}, Surroundings(Folders(tmp_path, (tmp_path,), (tmp_path,))))


def delta(*plans: str, cache: dict[str, str] | None = None) -> tuple[Delta, ScriptedProvider]:
    provider = ScriptedProvider([f"{plan}```" for plan in plans], name="scripted", grammars=False)
    return Delta(provider, cache={} if cache is None else cache), provider


CLAIMS = [
    'answer("done")',
    'answer("Wrote the lines to count.txt")',
    'answer(f"{len(lines)} lines written to count.txt")',
    'answer(f"Saved: {len(lines)}")',
    'answer(f"Noted: {len(lines)} lines")',
    'answer(f"Kim was told that there are {len(lines)}")',
    'answer(f"I let Kim know: {len(lines)}")',
    'answer({"status": "ok", "lines": len(lines)})',
    'said = "Sen"\nanswer(said + "t it.")',
    'answer("Kim knows now")',
    'answer(f"{len(lines)} Zeilen in count.txt gespeichert")',
    'answer(f"Erledigt, {len(lines)} Zeilen")',
    'answer(f"Kim weiß Bescheid: {len(lines)}")',
    'answer(f"C\'est noté : {len(lines)}")',
    'answer(f"Kim est prévenue, {len(lines)} lignes")',
    'answer(f"Queda apuntado: {len(lines)}")',
    'answer(f"Avisado: {len(lines)} líneas")',
]


@pytest.mark.parametrize("call", [WRITE, SEND])
@pytest.mark.parametrize("claim", CLAIMS)
async def test_an_answer_that_tells_of_a_dropped_step_is_never_used(registry: Registry, call: str, claim: str) -> None:
    with pytest.raises(UnaskedEffectError) as caught:
        await delta(*[f"{READ}{call}{claim}\n"] * 3)[0].compile(INTENT, registry)
    assert caught.value.code == "plan.unasked-effect"
    assert caught.value.effects == ({"write"} if call == WRITE else {"send"})


@pytest.mark.parametrize(
    "code",
    [
        f"if len(lines) > 3:\n    {SEND}    answer(f'Saved {{len(lines)}}')\nelse:\n    answer('Nothing was saved')\n",
        f"for line in lines:\n    {SEND}answer(f'{{len(lines)}} mails sent')\n",
        f"said = ''\nif len(lines) > 3:\n    {SEND}    said = 'All set'\nanswer(said)\n",
    ],
)
async def test_a_claim_after_a_branch_or_a_loop_is_found(registry: Registry, code: str) -> None:
    with pytest.raises(UnaskedEffectError):
        await delta(*[READ + code] * 3)[0].compile(INTENT, registry)


@pytest.mark.parametrize(
    "honest",
    [
        "answer(len(lines))",
        "answer(lines)",
        'answer(f"There are {len(lines)} lines")',
        'answer(f"Es sind {len(lines)} Zeilen")',
        'answer(f"Il y a {len(lines)} lignes")',
        'answer(f"Hay {len(lines)} líneas")',
        'answer(f"{len(lines)} lines; nothing was saved")',
    ],
)
async def test_a_plan_without_a_claim_is_used_without_the_step(registry: Registry, honest: str) -> None:
    planner, provider = delta(f"{READ}{WRITE}{honest}\n")
    compiled = await planner.compile(INTENT, registry)
    assert "write_text" not in print_plan(compiled.plan, registry)
    assert compiled.dropped == ("write_text",)
    assert len(provider.requests) == 1


async def test_a_branch_that_drops_nothing_may_answer_with_a_fixed_text(registry: Registry) -> None:
    code = f"{READ}if len(lines) > 3:\n    {WRITE}    answer(len(lines))\nelse:\n    answer('Three lines at most')\n"
    compiled = await delta(code)[0].compile(INTENT, registry)
    assert compiled.dropped == ("write_text",)


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("Which lines of notes.txt did Kim send?", 'answer(f"Kim sent {lines}")'),
        ("Is the bill in notes.txt paid?", 'answer("Yes" if len(lines) > 1 else "No")'),
        ("Welche Zeilen von notes.txt hat Kim geschickt?", 'answer(f"Kim hat {lines} geschickt")'),
        ("Quelles lignes de notes.txt Kim a-t-il payées ?", 'answer(f"Kim a payé {lines}")'),
        ("¿Qué líneas de notes.txt mandó Kim?", 'answer(f"Kim mandó {lines}")'),
    ],
)
async def test_the_answer_to_a_question_may_tell_what_others_did(
    registry: Registry, request_text: str, answer: str
) -> None:
    compiled = await delta(f"{READ}{WRITE}{answer}\n")[0].compile(Intent(request=request_text), registry)
    assert compiled.dropped == ("write_text",)


@pytest.mark.parametrize(
    "request_text",
    [
        "Could you jib notes.txt?",
        "Hey, can you jib notes.txt please?",
        "Kannst du notes.txt jibben?",
        "Tu peux jiber notes.txt ?",
        "¿Me puedes jibar notes.txt?",
        "How many lines has notes.txt?",
    ],
)
async def test_an_order_in_the_form_of_a_question_and_a_question_get_no_claim(
    registry: Registry, request_text: str
) -> None:
    code = f'{READ}{WRITE}answer(f"{{len(lines)}} lines written to count.txt")\n'
    with pytest.raises(UnaskedEffectError):
        await delta(*[code] * 3)[0].compile(Intent(request=request_text), registry)


async def test_a_repair_that_claims_nothing_is_used(registry: Registry) -> None:
    planner, provider = delta(f'{READ}{WRITE}answer("Saved")\n', f"{READ}answer(len(lines))\n")
    compiled = await planner.compile(INTENT, registry)
    assert compiled.repairs == 1
    assert "in known words" in provider.requests[1].messages[-1].text


async def test_a_stored_plan_and_a_cached_one_are_judged_with_what_they_lost(registry: Registry) -> None:
    cache: dict[str, str] = {}
    honest, claiming = f"{READ}{WRITE}answer(len(lines))\n", f'{READ}{WRITE}answer("Saved")\n'
    planner, _ = delta(honest, cache=cache)
    first = await planner.compile(INTENT, registry)
    again = await planner.compile(INTENT, registry)
    assert again.cached
    assert again.dropped == first.dropped == ("write_text",)
    assert planner.restore(parse(honest, registry).plan, INTENT, registry) is not None
    assert planner.restore(parse(claiming, registry).plan, INTENT, registry) is None
    # An entry is trusted no more than a model.
    (key,) = cache
    entry = json.loads(cache[key])
    entry["plan"] = parse(claiming, registry).plan.to_json()
    cache[key] = json.dumps(entry)
    with pytest.raises(BicameralError):
        await planner.compile(INTENT, registry)


async def test_a_drawn_plan_that_claims_a_dropped_step_is_not_used(registry: Registry) -> None:
    from bicameral.planning._decode import Sampling

    planner, _ = delta(f'{READ}{SEND}answer("Sent it to Kim")\n', f"{READ}{SEND}answer(len(lines))\n")
    assert await planner.draw(INTENT, registry, Sampling(0.7, 1)) is None
    assert (await planner.draw(INTENT, registry, Sampling(0.7, 2))) is not None


class Person:
    def __init__(self, reply: bool) -> None:
        self.reply = reply
        self.asked: list[str] = []

    async def ask(self, question: str, type: Type) -> object:
        self.asked.append(question)
        return self.reply


def _agent(tmp_path: Path, code: str, count: int) -> Agent:
    (tmp_path / "notes.txt").write_text("a\nb\n")
    (tmp_path / "bicameral.toml").write_text("[toolbox.files]\n")
    config = Config.load(tmp_path / "bicameral.toml")
    return Agent(config=config, privileged=ScriptedProvider([f"{code}```"] * count, grammars=False), cache={})


JIB = "Jib notes.txt (count.txt)"
COPY = 'text = read_text("notes.txt")\nwrite_text("count.txt", text)\nanswer("Wrote the text to count.txt")\n'


async def test_a_person_is_asked_and_may_allow_the_step(tmp_path: Path) -> None:
    person = Person(reply=True)
    planned = await _agent(tmp_path, COPY, 4).plan(JIB, deterministic=True, asker=person, plans=0)
    assert "write_text" in planned.source
    assert "write" in planned.intent.effects
    assert len(person.asked) == 1
    assert "write something (write_text)" in person.asked[0]


@pytest.mark.parametrize("person", [None, Person(reply=False)])
async def test_without_a_yes_there_is_no_plan(tmp_path: Path, person: Person | None) -> None:
    with pytest.raises(UnaskedEffectError):
        await _agent(tmp_path, COPY, 4).plan(JIB, deterministic=True, asker=person, plans=0)


async def test_whoever_says_no_gets_the_text_and_is_told_what_was_left_out(tmp_path: Path) -> None:
    shown = 'text = read_text("notes.txt")\nanswer(text)\n'
    replies = [f"{code}```" for code in (COPY, COPY, shown, shown)]
    (tmp_path / "notes.txt").write_text("a\nb\n")
    model = ScriptedProvider(replies, grammars=False)
    config = Config(base=tmp_path)
    planned = await Agent(config=config, privileged=model, cache={}).plan(
        JIB, deterministic=True, asker=Person(reply=False), plans=0
    )
    assert "write_text" not in planned.source
    assert "left-out" in [doubt.code for doubt in planned.doubts]
    # The twin: nobody is there to see that nothing was written.
    with pytest.raises(UnaskedEffectError):
        await Agent(config=config, privileged=ScriptedProvider(replies, grammars=False), cache={}).plan(
            JIB, deterministic=True, plans=0
        )


async def test_a_plan_that_shows_the_text_says_what_it_left_out(tmp_path: Path) -> None:
    planned = await _agent(tmp_path, COPY.replace('"Wrote the text to count.txt"', "text"), 4).plan(
        JIB, deterministic=True, plans=0
    )
    assert [doubt.text for doubt in planned.doubts if doubt.code == "left-out"] == [
        "write_text was not called: the request does not ask for it"
    ]


@pytest.mark.parametrize("text", ["All set", f"{HOLE} saved", f"OK: {HOLE}", f"{HOLE} aufgeschrieben"])
def test_texts_that_may_claim(text: str) -> None:
    assert may_claim(text)


@pytest.mark.parametrize("text", ["", HOLE, f"{HOLE} lines", "Nothing", f"Nothing was saved. {HOLE}", f"Total: {HOLE}"])
def test_texts_that_claim_nothing(text: str) -> None:
    assert not may_claim(text)
