"""Prices: by the exact model, with files of one's own over the table, and never 0 for what nobody knows."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ConfigError, Place
from bicameral.limits import FREE_PRICE, Price, Prices, current_prices, known_prices, load_prices, use_prices
from bicameral.limits._prices import parse_prices
from bicameral.models import Usage

TABLE = tomllib.loads(resources.files("bicameral.limits").joinpath("prices.toml").read_text("utf-8"))


def usage_of(fresh: int, cached: int, output: int) -> Usage:
    return Usage(fresh + cached, cached, output)


usages = st.builds(usage_of, st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
amounts = st.floats(0, 1000)


def test_the_table_is_dated_and_every_price_makes_sense() -> None:
    table = known_prices()
    assert len(table.version) == len("2026-11-15")
    assert table.currency == "USD"
    assert len(table.models) > 50
    for name, price in table.models.items():
        assert 0 < price.read <= price.written, name
        assert price.cached is None or price.cached <= price.read, name
        assert (price.long is None) == (price.long_from is None)


def test_a_price_is_found_by_the_exact_name_and_by_a_dated_one() -> None:
    table = known_prices()
    plain = table.of("openai:gpt-4.1")
    assert plain == Price(2, 8, 0.5)
    assert table.of("openai:gpt-4.1-2025-04-14") == plain
    assert table.of("openai:gpt-4.1#1a2b3c4d") == plain
    assert table.of("anthropic:claude-opus-4-5-20251101") == table.of("anthropic:claude-opus-4-5")
    assert table.of("openai:gpt-4.1-mini") != plain


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-99",
        "gpt-4.1",
        "openai:gpt-4.1@proxy.example.com/v1",
        "openai:gpt-4.1-mini-nano",
        "vllm:llama@gpu.example.com:8000/v1",
        "openai:x@localhost.example.com/v1",
        "router:0123",
        "",
    ],
)
def test_what_nobody_knows_is_none_and_not_free(name: str) -> None:
    assert known_prices().of(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "local:0.5b@f7e2a9c1",
        "ollama:llama3",
        "openai:x@127.0.0.1:8080/v1",
        "vllm:q@localhost:8000/v1",
        "openai:x@[::1]/v1",
    ],
)
def test_what_runs_on_this_machine_is_free(name: str) -> None:
    assert known_prices().of(name) == FREE_PRICE


def test_a_file_of_ones_own_goes_over_the_table(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        'version = "mine"\n[openai]\n"gpt-4.1" = { read = 1, written = 2 }\n[azure]\nours = { read = 3, written = 4 }\n'
    )
    table = load_prices(file)
    assert table.of("openai:gpt-4.1") == Price(1, 2)
    assert table.of("azure:ours") == Price(3, 4)
    assert table.of("openai:gpt-4o") == known_prices().of("openai:gpt-4o")
    assert table.version == "mine"


def test_a_file_in_another_currency_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('currency = "EUR"\n[openai]\n"gpt-4.1" = { read = 1, written = 2 }\n')
    table = load_prices(file)
    assert (table.currency, table.of("openai:gpt-4o")) == ("EUR", None)
    with pytest.raises(ConfigError):
        Prices(known_prices().models).merged_over(Prices({"a": FREE_PRICE}, currency="EUR"))


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "openai = 3",
        "[openai]\nx = 3",
        "[openai]\nx = { read = 1 }",
        "[openai]\nx = { read = -1, written = 1 }",
        "[openai]\nx = { read = nan, written = 1 }",
        "[openai]\nx = { read = inf, written = 1 }",
        "[openai]\nx = { read = true, written = 1 }",
        '[openai]\nx = { read = "1", written = 1 }',
        "[openai]\nx = { read = 1, written = 1, wirtten = 1 }",
        "[openai]\nx = { read = 1, written = 1, long_from = 5 }",
        "[openai]\nx = { read = 1, written = 1, long_from = 5, long = { read = 1 } }",
        "currency = 3",
    ],
)
def test_a_wrong_file_is_a_clear_error_with_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_prices(file)
    assert raised.value.code in ("config.prices", "config.bad-toml")
    assert str(file) in str(raised.value)


@given(st.text())
def test_any_text_gives_prices_or_a_clear_error(text: str) -> None:
    try:
        table = parse_prices(text, "prices.toml")
    except ConfigError as error:
        table = Prices()
        if error.place != Place(file="prices.toml"):
            raise
    assert all(price.read >= 0 for price in table.models.values())


def test_a_missing_or_huge_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load_prices(tmp_path / "none.toml")
    assert raised.value.code == "config.unreadable"
    (tmp_path / "huge.toml").write_text("#" * 2_000_000)
    with pytest.raises(ConfigError) as raised:
        load_prices(tmp_path / "huge.toml")
    assert raised.value.code == "config.too-large"


@given(usages, usages, amounts, amounts, st.none() | amounts)
def test_prices_add_up(one: Usage, two: Usage, read: float, written: float, cached: float | None) -> None:
    price = Price(read, written, cached)
    assert price.of(one + two) == pytest.approx(price.of(one) + price.of(two))
    assert price.of(one) >= 0


@given(usages, amounts, amounts, amounts)
def test_the_worst_case_is_never_less_than_what_it_costs(
    usage: Usage, read: float, written: float, cached: float
) -> None:
    price = Price(read, written, min(cached, read))
    assert price.worst_case(usage.prompt, usage.output) >= price.of(usage) - 1e-9


def test_a_long_prompt_is_charged_as_one() -> None:
    price = Price(1, 2, None, 100, Price(10, 20))
    assert price.of(Usage(prompt=100)) == pytest.approx(100 / 1e6)
    assert price.of(Usage(prompt=101)) == pytest.approx(1010 / 1e6)


def test_prices_hold_where_they_are_said_to() -> None:
    mine = Prices({"x": Price(1, 1)})
    with use_prices(mine):
        assert current_prices() is mine
    assert current_prices() is known_prices()
