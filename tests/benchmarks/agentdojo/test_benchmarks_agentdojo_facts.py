"""The facts of the suites hold: what strangers write is called so, and attacks do what they are after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: make agentdojo")

from benchmarks.agentdojo.adapter import World
from benchmarks.agentdojo.attacks import Goal, goals
from benchmarks.agentdojo.declarations import declarations
from benchmarks.agentdojo.dojo import runtime_of, suite_of
from benchmarks.agentdojo.worlds import environment, vectors

CANARY = "planted-by-a-stranger"

READS: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    "workspace": [
        ("get_unread_emails", {}),
        ("get_received_emails", {}),
        ("get_sent_emails", {}),
        ("search_emails", {"query": ""}),
        ("search_contacts_by_name", {"query": ""}),
        ("search_contacts_by_email", {"query": ""}),
        ("search_calendar_events", {"query": ""}),
        ("get_day_calendar_events", {"day": "2024-05-15"}),
        ("list_files", {}),
        ("search_files", {"query": ""}),
        ("search_files_by_filename", {"filename": ""}),
        ("get_file_by_id", {"file_id": "0"}),
        ("append_to_file", {"file_id": "11", "content": "more"}),
        ("share_file", {"file_id": "24", "email": "john.doe@gmail.com", "permission": "r"}),
        ("delete_file", {"file_id": "23"}),
        ("reschedule_calendar_event", {"event_id": "24", "new_start_time": "2024-05-15 10:00"}),
        ("add_calendar_event_participants", {"event_id": "13", "participants": ["john.doe@gmail.com"]}),
    ],
    "travel": [
        ("get_all_hotels_in_city", {"city": "Paris"}),
        ("get_all_restaurants_in_city", {"city": "Paris"}),
        ("get_all_car_rental_companies_in_city", {"city": "Los Angeles"}),
        ("get_rating_reviews_for_hotels", {"hotel_names": ["Le Marais Boutique", "City Hub", "Good Night"]}),
        ("get_hotels_prices", {"hotel_names": ["Le Marais Boutique", "City Hub", "Good Night"]}),
        ("get_rating_reviews_for_restaurants", {"restaurant_names": ["Le Baratin", "New Asiaway"]}),
        ("get_price_for_restaurants", {"restaurant_names": ["Le Baratin", "New Asiaway"]}),
        ("get_rating_reviews_for_car_rental", {"company_name": ["Speedy Rentals", "New Car Rental"]}),
        ("get_car_price_per_day", {"company_name": ["Speedy Rentals", "New Car Rental"]}),
        ("get_flight_information", {"departure_city": "Paris", "arrival_city": "London"}),
        ("get_user_information", {}),
    ],
    "banking": [
        ("get_most_recent_transactions", {}),
        ("get_scheduled_transactions", {}),
        ("get_iban", {}),
        ("get_balance", {}),
        ("get_user_info", {}),
        ("read_file", {"file_path": "bill-december-2023.txt"}),
        ("read_file", {"file_path": "landlord-notices.txt"}),
        ("read_file", {"file_path": "address-change.txt"}),
    ],
    "slack": [
        ("get_channels", {}),
        ("get_users_in_channel", {"channel": "general"}),
        ("read_channel_messages", {"channel": "general"}),
        ("read_inbox", {"user": "Bob"}),
        ("get_webpage", {"url": "www.dora-website.com"}),
        ("get_webpage", {"url": "www.eve-blog.com"}),
        ("get_webpage", {"url": "www.informations.com"}),
    ],
}


def planted(value: Any, path: str = "", holder: dict[str, Any] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where the canary stands in a result, with the record that holds it."""
    if isinstance(value, str):
        if CANARY in value:
            yield path, holder or {}
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from planted(item, f"{path}[]", holder)
    elif isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        for name, item in record.items():
            below = f"{path}.{name}" if path else name
            yield from planted(item, below, record)
            if not name.isidentifier():
                yield from planted(item, f"{path}.*" if path else "*", record)


async def answer(suite: str, tool: str, arguments: Mapping[str, Any]) -> Any:
    """What a tool gives in a world where every injection vector holds the canary."""
    world = environment(suite, dict.fromkeys(vectors(suite), CANARY))
    found = World(suite, runtime_of(suite), world).registry.get(tool)
    assert found is not None
    return await found.call(arguments)


@pytest.mark.parametrize("suite", READS)
async def test_what_an_injection_can_write_is_never_trusted(suite: str) -> None:
    reached = 0
    for tool, arguments in READS[suite]:
        declared = declarations(suite)[tool]
        for path, record in planted(await answer(suite, tool, arguments)):
            origin = declared.origin(path)
            owned = origin.own_when is not None and record.get(origin.own_when[0]) == origin.own_when[1]
            assert origin.trust == "third_party", f"{tool} {path}"
            assert not owned, f"{tool} {path}"
            reached += 1
    assert reached >= 4


@pytest.mark.parametrize("suite", READS)
def test_every_argument_of_every_tool_is_declared(suite: str) -> None:
    declared = declarations(suite)
    tasks: Any = suite_of(suite)
    tools = {tool.name: set(tool.parameters.model_fields) for tool in tasks.tools}
    assert {name: set(declaration.arguments) for name, declaration in declared.items()} == tools
    for declaration in declared.values():
        assert set(declaration.receivers or ()) <= set(declaration.arguments)


@pytest.mark.parametrize(
    ("suite", "task", "goal"),
    [(suite, task, goal) for suite in READS for task, goal in goals(suite, environment(suite, {})).items()],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_calls_of_an_attack_reach_its_goal(suite: str, task: str, goal: Goal) -> None:
    tasks: Any = suite_of(suite)
    before, after = environment(suite, {}), environment(suite, {})
    runtime: Any = runtime_of(suite)
    for wish in goal.wishes:
        _, error = runtime.run_function(after, wish.tool, dict(wish.arguments))
        assert error is None
    assert tasks.injection_tasks[task].security("\n".join(goal.texts), before, after)
