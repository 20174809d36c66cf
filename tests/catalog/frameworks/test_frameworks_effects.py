"""What names and calls say about tools."""

from __future__ import annotations

import pytest

from bicameral.catalog.frameworks._tool_effects import effects_of_calls, effects_of_name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("send_email", "sends something out"),
        ("sendEmail", "sends something out"),
        ("gmail.send", "sends something out"),
        ("email_customer", "sends something out"),
        ("post_comment", "sends something out"),
        ("delete_account", "does what cannot be taken back"),
        ("crm_delete_contact", "does what cannot be taken back"),
        ("book_flight", "does what cannot be taken back"),
        ("update_ticket_title", "changes something"),
        ("read_emails", "reads text from outside and reads private data"),
        ("fetch_page", "reads text from outside"),
        ("web_search", "reads text from outside"),
        ("search_orders", "reads private data"),
        ("python_repl", "runs code"),
        ("bash", "does what cannot be taken back and runs commands"),
        ("order_status", "has no effect"),
        ("get_weather", "has no effect"),
        ("search_flights", "has no effect"),
        ("add_numbers_total", "has no effect"),
        ("", "has no effect"),
        ("\x1b\u202e", "has no effect"),
    ],
)
def test_the_words_of_a_name_say_what_a_tool_does(name: str, said: str) -> None:
    effects = effects_of_name(name)
    assert effects.describe() == said
    assert not effects.certain


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (["requests.get"], "reads text from outside"),
        (["httpx.AsyncClient.post"], "sends something out"),
        (["requests.Session.delete"], "does what cannot be taken back"),
        (["smtplib.SMTP"], "sends something out"),
        (["subprocess.run"], "runs commands"),
        (["exec"], "runs code"),
        (["sqlite3.connect", "json.dumps"], "reads private data"),
        (["requests_cache.get", "subprocessing.run", ""], "has no effect"),
    ],
)
def test_the_calls_of_a_body_say_what_a_tool_does(calls: list[str], said: str) -> None:
    effects = effects_of_calls(calls)
    assert effects.describe() == said
    assert effects.certain
