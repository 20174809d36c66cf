"""Lists of people: tables with addresses and names, whatever they and their columns are called."""

from __future__ import annotations

import pytest

from bicameral.columns import Contact, find_contacts, looks_like_name, parse_addresses

ANNA = "anna.weber@example.org"


def rows(*lines: str) -> list[dict[str, object]]:
    head, *rest = (line.split("|") for line in lines)
    return [dict(zip(head, each, strict=True)) for each in rest]


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (rows("name|email", f"Anna Weber|{ANNA}"), ("Anna Weber",)),
        (rows("full name|email", f"anna weber|{ANNA}"), ("anna weber",)),
        (rows("Vorname|Nachname|Post", f"Anna|Weber|{ANNA}"), ("Anna Weber", "Anna", "Weber")),
        (rows("Nombre|Apellidos|Ciudad|Correo", f"Anna|Weber|Graz|{ANNA}"), ("Anna Weber", "Anna", "Weber")),
        (rows("Wer|Wohnort|Mail", f"Anna Weber|Graz|{ANNA}"), ("Anna Weber",)),
        (rows("A|B|C", f"Anna Weber|Graz|{ANNA}"), ("Anna Weber",)),
        (rows("A|B", f"Nan Weber|{ANNA}"), ("Nan Weber",)),
        (rows("A|B", "Tante Emma|te@example.org"), ("Tante Emma",)),
        (rows("address", f"Anna Weber <{ANNA}>"), ("Anna Weber",)),
        (rows("name|nickname|mail", f"Anna Weber|Nanni|{ANNA}"), ("Anna Weber", "Nanni")),
        (rows("seller|customer|customer email", f"Joe Hart|Anna Weber|{ANNA}"), ("Anna Weber",)),
    ],
)
def test_a_table_with_names_and_addresses_is_a_list_of_people(
    table: list[dict[str, object]], names: tuple[str, ...]
) -> None:
    (found,) = find_contacts(table)
    assert set(found.names) == set(names)
    assert found.names[0] == names[0]
    assert [each.partition("@")[2] for each in found.addresses] == ["example.org"]


@pytest.mark.parametrize(
    "table",
    [
        [],
        rows("name|city", "Anna Weber|Graz"),
        rows("id|mail", f"12|{ANNA}"),
        rows("project|lead", "Website Relaunch|lead@example.org"),
        rows("what|text", f"Anna|ask {ANNA} about it", "Ben|nothing", "Kim|later"),
        rows("What|mail", *(f"Chair {each}|shop@example.org" for each in "ABCD")),
        rows("A|B|C", "Anna Weber|Kim Holt|x1@example.org", "Joe Hart|Bo Lind|x2@example.org"),
        [{"name": 12, "mail": ANNA}],
        [{"name": "Anna", "mail": {"home": ANNA}}],
    ],
    ids=["empty", "no mail", "no name", "a thing", "in a text", "one shop", "two columns of names", "number", "nested"],
)
def test_another_table_has_no_people(table: list[dict[str, object]]) -> None:
    assert find_contacts(table) == ()


def test_each_address_of_a_person_is_kept_and_a_missing_one_is_nobody() -> None:
    table = rows("name|home|work", f"Anna Weber|{ANNA}|aw@office.example", "Ben Ito|ben@example.org|n/a")
    assert find_contacts(table) == (
        Contact(("Anna Weber",), (ANNA,)),
        Contact(("Ben Ito",), ("ben@example.org",)),
        Contact(("Anna Weber",), ("aw@office.example",)),
    )
    assert find_contacts(rows("name|mail", f"Anna Weber|{ANNA}, aw@office.example"))[0].addresses == (
        ANNA,
        "aw@office.example",
    )


def test_a_remark_among_the_addresses_does_not_hide_the_others() -> None:
    table = rows("name|mail", *(f"Anna {each}|a{each.lower()}@example.org" for each in "ABCDE"), "Ben Ito|by letter")
    assert len(find_contacts(table)) == 5


@pytest.mark.parametrize("text", ["Anna", "anna weber Berg", "李小龙", "Łukasz Żak", "O'Neill, Kim", "de la Cruz"])
def test_names_have_the_form_of_names(text: str) -> None:
    assert looks_like_name(text)


@pytest.mark.parametrize("text", ["", "call back", "Flat 12", ANNA, "A b c d e f g", "x" * 90])
def test_other_texts_have_not(text: str) -> None:
    assert not looks_like_name(text)


@pytest.mark.parametrize(
    "cell", ["", "anna", f"see {ANNA}", f"{ANNA} {ANNA}", "a@b@c", ",".join(["a@b.example"] * 2 + ["x"])]
)
def test_a_cell_with_anything_else_has_no_addresses(cell: str) -> None:
    assert parse_addresses(cell) == ()
