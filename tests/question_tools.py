"""Tools for tests of what a request leaves open: with a search among them, nobody is asked where something is."""

from __future__ import annotations

from dataclasses import replace

from bicameral.tools import Registry, tool


@tool(effect="read")
def read_text(path: str) -> str:
    "Read a text."
    return path


@tool(effect="read")
def find(query: str) -> list[str]:
    "Search everything."
    return [query]


@tool(effect="send", words=("send", "mail", "forward"))
def send_mail(to: list[str], body: str) -> None:
    "Send a mail."


@tool(effect="write", words=("add", "schedule", "write"))
def add_event(title: str) -> None:
    "Add an event."


@tool(effect="irreversible", words=("delete",))
def delete_file(path: str) -> None:
    "Delete a file."


PLAIN = Registry([read_text, send_mail, add_event, delete_file])
FINDING = Registry([read_text, send_mail, add_event, delete_file, replace(find, toolbox="find")])
