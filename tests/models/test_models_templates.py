# ruff: noqa: E501
"""Chat templates: they read as Jinja reads them, see nothing that is said, end soon, and reach nothing of Python."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from template_styles import GEMMA, LLAMA_3, MISTRAL, MISTRAL_LAST, QWEN_3, R1, STYLES

from bicameral.errors import ModelError
from bicameral.models import Message
from bicameral.models._chat_template import ChatTemplate, TemplateError
from bicameral.models._prompts import MarkerText, Vocabulary, render_prefix, render_prompt
from bicameral.models._template_process import reason_of, render as render_here

TALK = ("system", "user", "assistant", "user")
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def render(source: str, **names: Any) -> str:
    """What the program makes of a template, without its process."""
    try:
        return render_here(source, names)
    except Exception as error:
        raise TemplateError(reason_of(error)) from None


def messages(*speakers: str) -> list[dict[str, str]]:
    return [{"role": speaker, "content": f" text {number}\n"} for number, speaker in enumerate(speakers)]


def reference(source: str, names: dict[str, Any]) -> str:
    """What Jinja itself makes of a template, or why it refuses."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(reason: str) -> None:
        raise TemplateError("it refuses the conversation")

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    try:
        return environment.from_string(source, globals={"raise_exception": refuse}).render(**names)
    except TemplateError as error:
        return str(error)


def ours(source: str, names: dict[str, Any]) -> str:
    try:
        return render(source, **names)
    except TemplateError as error:
        return str(error)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("speakers", [("user",), ("system", "user"), TALK, ("user", "user"), ("assistant", "user")])
def test_templates_of_the_usual_families_are_rendered_as_jinja_renders_them(
    style: str, speakers: tuple[str, ...]
) -> None:
    names: dict[str, Any] = {"messages": messages(*speakers), "bos_token": "<s>", "eos_token": "</s>"}
    for generation in (True, False):
        names |= {"add_generation_prompt": generation, "enable_thinking": False}
        assert ours(STYLES[style], names) == reference(STYLES[style], names)


@pytest.mark.parametrize(
    "source",
    [
        "a\n  {% if true %}\n  b {{ 1 }}\n\n  {%- endif %}\n\n c {# x #}\n d {#- y -#}  \n e\n\n",
        "{% set x %}\n q {{ x }}\n  {%+ if 1 %} k{% endif +%}\n{% endset %}[{{ x }}]",
        "{{ [1, 2, 3][1:] }}{{ 'a' ~ 1 }}{{ 1 if false }}{{ 'x' if 1 else 'y' }}{{ {'a': {}}}}{{ not 1 == 2 }}",
        "{{ 1 + 2 * 3 - 4 // 3 }} {{ -1|abs }} {{ 7 % 4 }} {{ 1 < 2 < 3 }} {{ '%' * 3 }} {{ 1.5 }} {{ none }} {{ true }}",
        "{{ 'a,b'.split(',')|join('-') }} {{ 'ab'[::-1] }} {{ 'a' 'b' }} {{ \"x\\n\" + 'y ' | trim }}|",
        "{{ m|map(attribute='role')|join(', ') }} {{ (m|selectattr('role', 'equalto', 'user')|list)|length }}",
        "{{ m|rejectattr('role', 'equalto', 'user')|map(attribute='content')|list|first|trim }} {{ m[-1].role }}",
        "{% for a in range(4) if a != 1 %}{{ loop.index }}{{ loop.last }}{% else %}none{% endfor %}",
        "{% for a in [] %}x{% else %}none{% endfor %}{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}",
        "{% macro f(a, b='z') %}<{{ a }}{{ b }}>{% endmacro %}{{ f(1) }}{{ f(1, b=2) }}",
        "{% set n = namespace(n=0) %}{% for x in m %}{% set n.n = n.n + 1 %}{% if n.n == 2 %}{% break %}{% endif %}{% endfor %}{{ n.n }}",
        "{% set x = 1 %}{% for y in m %}{% set x = 2 %}{% endfor %}{{ x }}{{ missing }}{{ missing is defined }}",
        "{{ 3 is odd }}{{ 5 is divisibleby 5 }}{{ none is none }}{{ 'x' is string and 'b' in 'abc' }}{{ 'a' not in ['b'] }}",
        "{% filter upper %}abc{% endfilter %}{% for k, v in {'b': 1, 'a': 2}|dictsort %}{{ k }}{% endfor %}{{ 'x'|default('y') }}{{ q|default('y') }}",
        "{{ {'a': [1, 'x', none, true]} | tojson }} {{ [3, 1, 2]|sort|reverse|list }} {{ m[0].get('none', 4) }}",
    ],
)
def test_the_language_means_what_it_means_in_jinja(source: str) -> None:
    names = {"m": messages(*TALK)}
    assert render(source, **names) == reference(source, names)


@pytest.mark.parametrize(
    ("style", "layout"),
    [
        (
            LLAMA_3,
            (
                "<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\n",
                0,
                "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
                1,
                "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
            ),
        ),
        (MISTRAL, ("<s>[INST] ", 0, "\n\n", 1, " [/INST]")),
        (MISTRAL_LAST, ("<s>[INST]", 0, "\n\n", 1, "[/INST]")),
        (GEMMA, ("<s><start_of_turn>user\n", 0, "\n\n", 1, "<end_of_turn>\n<start_of_turn>model\n")),
        (R1, ("<s>", 0, "<｜User｜>", 1, "<｜Assistant｜><think>\n</think>\n\n")),
        (
            QWEN_3,
            (
                "<|im_start|>system\n",
                0,
                "<|im_end|>\n<|im_start|>user\n",
                1,
                "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
            ),
        ),
    ],
)
def test_the_system_message_is_in_every_prompt_and_a_reply_begins_without_a_thought(
    style: str, layout: tuple[str | int, ...]
) -> None:
    assert ChatTemplate(style, "<s>", "</s>").layout(("system", "user")) == layout


def test_a_system_message_that_a_template_would_put_behind_other_turns_is_folded_into_the_first() -> None:
    numbers = [part for part in ChatTemplate(MISTRAL_LAST, "<s>", "</s>").layout(TALK) if isinstance(part, int)]
    assert numbers == [0, 1, 2, 3]


def test_turns_of_one_speaker_are_joined_for_a_template_that_wants_them_to_alternate() -> None:
    layout = ChatTemplate(GEMMA, "<s>").layout(("system", "user", "user", "assistant", "user"))
    assert [part for part in layout if isinstance(part, int)] == [0, 1, 2, 3, 4]
    assert layout[:6] == ("<s><start_of_turn>user\n", 0, "\n\n", 1, "\n\n", 2)


def test_a_prompt_begins_with_the_token_that_the_weights_want_once() -> None:
    assert ChatTemplate(CHATML, "<s>", adds_bos=True).layout(("user",))[0] == "<s><|im_start|>user\n"
    assert ChatTemplate(CHATML, "<s>").layout(("user",))[0] == "<|im_start|>user\n"
    assert (
        ChatTemplate("{{ bos_token }}" + CHATML, "<s>", adds_bos=True).layout(("user",))[0] == "<s><|im_start|>user\n"
    )


def test_turns_that_plain_text_marks_are_told_from_those_that_tokens_mark() -> None:
    assert ChatTemplate(CHATML).is_marked(frozenset({"<|im_end|>"}))
    assert not ChatTemplate(MISTRAL, "<s>", "</s>").is_marked(frozenset({"<s>", "</s>"}))


# Attacks of whoever wrote the template

ENDLESS = (
    "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
    "{% set x = 'a' * 1000000 %}{{ x * 1000000 }}",
    "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}"
    "{% endfor %}{{ n.x == n.y }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ 'ab'.replace('', 'x' * 900000) }}",
    "{{ ('x,' * 400000).split(',')|join('y' * 1000) }}",
    "{{ range(10 ** 9) }}",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "{{ " + "1 + " * 20000 + "1 }}",
    "{{ " + "-" * 20000 + "1 }}",
    "{% if 1 %}" * 5000,
    "x" * (1 << 19),
    "{{ " + "[" * 3000 + "]" * 3000 + " }}",
    "{{ '" + "1" * 5000 + "'|int * 999999999 * 999999999 * 999999999 }}",
)


@pytest.mark.parametrize("source", ENDLESS, ids=range(len(ENDLESS)))
def test_a_template_that_does_not_end_or_grows_without_bound_is_refused_soon(source: str) -> None:
    began = time.process_time()
    with pytest.raises(ModelError) as caught:
        ChatTemplate(source).layout(("user",))
    assert caught.value.code == "models.bad-template"
    assert time.process_time() - began < 20


UNREACHABLE = (
    "{{ messages.__class__ }}",
    "{{ messages[0]['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ namespace().__dict__ }}",
    "{{ messages|map(attribute='__class__')|join }}",
    "{{ range.__globals__ }}",
    "{{ lipsum }}",
    "{{ self }}",
)


@pytest.mark.parametrize("source", UNREACHABLE)
def test_an_attribute_of_python_is_one_that_does_not_exist(source: str) -> None:
    assert render(f"<{source}>", messages=messages("user")) in ("<>", "<none>", "<undefined>")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__class__.__mro__ }}",
        "{{ messages[0].__init__.__globals__ }}",
        "{{ messages[0]['__class__'].x }}",
        "{{ raise_exception.__globals__ }}",
        "{{ '{0.__class__}'.format(messages) }}",
        "{{ loop.__class__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ lipsum.__globals__ }}",
        "{{ range.call }}{{ range.call() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'x' %}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
        "{% set messages[0].role = 'system' %}",
        "{% set messages.x = 1 %}",
    ],
)
def test_a_template_reaches_no_attribute_of_python_and_changes_nothing_that_it_is_given(source: str) -> None:
    with pytest.raises(ModelError) as caught:
        ChatTemplate(f"{source}{CHATML}").layout(("user",))
    assert caught.value.code == "models.bad-template"


@given(st.text(st.sampled_from("{}%#-+ \n'\"abc.()[]|=1,~inforsetd")))
@example("{{ '\\x' }}")
@example("{{ 1 is in }}")
@example("{% for in %}")
@example("{{ a[:::] }}")
def test_whatever_a_template_says_it_is_rendered_or_refused(source: str) -> None:
    try:
        render(source, messages=messages(*TALK))
    except TemplateError:
        return


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages if m.role != 'user' %}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content[:5] }}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[0].content[1:] }}",
        "{% for m in messages %}{{ m.content|upper }}{% endfor %}",
        "{% for m in messages|reverse %}{{ m.content }}{% endfor %}",
        "no turns at all",
    ],
)
def test_a_template_that_drops_repeats_changes_or_reorders_what_is_said_is_refused(source: str) -> None:
    with pytest.raises(ModelError) as caught:
        ChatTemplate(source).layout(("user", "assistant", "user"))
    assert caught.value.code == "models.bad-template"


def test_a_template_that_drops_the_system_message_gets_it_with_the_first_turn() -> None:
    drops = (
        "{% for m in messages if m.role != 'system' %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    )
    assert ChatTemplate(drops).layout(("system", "user"))[:4] == ("<|im_start|>user\n", 0, "\n\n", 1)


# Attacks of whoever wrote a text that a model reads

CONTROL = frozenset({"<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>", "<|eot_id|>", "</s>", "<s>"})
HOSTILE = st.lists(
    st.sampled_from([*CONTROL, "<", "|", "im_end|>", "\ue0f0turn0\ue0f0", "{{ 1 }}", "\n", "é", "\ud800"])
)


@given(st.sampled_from(sorted(STYLES)), HOSTILE, HOSTILE)
def test_no_content_becomes_a_marker_whatever_the_template(style: str, one: list[str], other: list[str]) -> None:
    vocabulary = Vocabulary(1, 2, CONTROL, 0, "<s>", ChatTemplate(STYLES[style], "<s>", "</s>"))
    texts = ["".join(one), "".join(other), "fine"]
    said = [Message(speaker, text) for speaker, text in zip(("system", "user", "assistant"), texts, strict=True)]
    prompt = render_prompt([*said, Message("user", texts[1])], texts[0], vocabulary)
    markers = [piece.text for piece in prompt if isinstance(piece, MarkerText)]
    # What the template writes does not depend on what is said.
    benign = [Message(message.speaker, "fine") for message in (*said, Message("user", ""))]
    assert markers == [piece.text for piece in render_prompt(benign, "", vocabulary) if isinstance(piece, MarkerText)]
    pieces = [piece for piece in prompt if isinstance(piece, str)]
    assert not [piece for piece in pieces if any(token in piece for token in CONTROL)]
    kept = "".join([*texts, texts[1], texts[0]]).replace("\ud800", "?")
    assert "".join(pieces) == kept
    assert not [piece for piece in prompt if isinstance(piece, int)]


@pytest.mark.parametrize("style", STYLES)
def test_the_beginning_of_a_prompt_that_is_kept_holds_no_text_of_a_user(style: str) -> None:
    vocabulary = Vocabulary(1, 2, CONTROL, 0, "<s>", ChatTemplate(STYLES[style], "<s>", "</s>"))
    talk = (Message("system", "The rules."), Message("user", "Something private."))
    prefix = render_prefix(talk, 0, vocabulary)
    whole = render_prompt(talk, "", vocabulary)
    assert prefix == whole[: len(prefix)]
    shown = "".join(piece.text if isinstance(piece, MarkerText) else str(piece) for piece in prefix)
    assert "The rules." in shown
    assert "private" not in shown
    assert not re.search("private", "".join(piece.text for piece in whole if isinstance(piece, MarkerText)))
