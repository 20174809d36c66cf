"""A token does what its roles allow and nothing else, over HTTP and over MCP; one without roles does everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from mcp_world import MODES, Person, ServedMcp, code, facts, serving_mcp
from openapi_documents import every_operation
from server_world import FORWARD, Served

from bicameral.errors import ServerError
from bicameral.server import ROLES, Role, TokenFile, new_token
from bicameral.server._mcp_tools import TOOLS

ALLOWED: dict[str, tuple[Role, ...]] = {
    "submit": ("run",),
    "list_runs": ("see",),
    "get_run": ("see",),
    "cancel_run": ("run",),
    "get_journal": ("see",),
    "watch_run": ("see",),
    "plan": ("run",),
    "check": ("run",),
    "list_approvals": ("see", "approve"),
    "get_approval": ("see", "approve"),
    "answer_approval": ("approve",),
    "reply_approval": ("approve",),
    "list_models": ROLES,
    "get_model": ROLES,
    "chat": ("run",),
    "metrics": ("see",),
}
"""By operation, the roles of which a token must have one."""
BODIES: dict[str, Any] = {
    "submit": {"plan": "answer(1)\n"},
    "plan": {"request": "say hello"},
    "check": {"plan": "answer(1)\n"},
    "answer_approval": {"approve": "none"},
    "reply_approval": {"value": 1},
    "chat": {"model": "bicameral", "messages": [{"role": "user", "content": "say hello"}]},
}


def tokens_of(folder: Path) -> TokenFile:
    return TokenFile(folder / "xdg_config_home" / "bicameral" / "tokens.json")


@pytest.mark.parametrize("role", ROLES)
def test_an_operation_is_for_the_roles_that_it_is_for(served: Served, role: Role) -> None:
    _, text = tokens_of(served.folder).add("ben", roles=(role,))
    with httpx.Client(base_url=served.address, headers={"Authorization": f"Bearer {text}"}, timeout=30) as http:
        document = http.get("/openapi.json").json()
        operations = [each for each in every_operation(document) if "security" in each[2]]
        # A new operation must say whom it is for.
        assert {operation["operationId"] for _, _, operation in operations} == set(ALLOWED)
        for path, method, operation in operations:
            name = operation["operationId"]
            address = path.replace("{run}", "r-1").replace("{approval}", "a-1").replace("{model}", "bicameral")
            answer = http.request(method, address, json=BODIES.get(name) if method == "post" else None)
            if role in ALLOWED[name]:
                assert answer.status_code != 403, (name, answer.text)
            else:
                assert answer.status_code == 403, (name, answer.text)
                assert answer.json()["error"]["code"] == "server.not-permitted"
                assert f"'{ALLOWED[name][0]}'" in answer.json()["error"]["expected"]


def test_who_may_only_run_does_not_approve_and_who_may_approve_does(served: Served) -> None:
    tokens = tokens_of(served.folder)
    served.tokens["runner"] = tokens.add("ben", roles=("see", "run"))[1]
    served.tokens["approver"] = tokens.add("ben", roles=("approve",))[1]
    run = served.submit("runner", plan=FORWARD)
    [approval] = served.settled(run, "runner")["waits_for"]
    path = f"/v1/approvals/{approval}/answer"
    served.ask("POST", path, "runner", code=403, json={"approve": "all"})
    assert served.ask("GET", f"/v1/approvals/{approval}", "approver")["state"] == "open"
    assert served.ask("POST", path, "approver", json={"approve": "all"})["state"] == "approved"
    assert served.settled(run, "runner")["state"] == "finished"


@pytest.fixture(scope="module")
def roles_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMcp]:
    with serving_mcp(tmp_path_factory.mktemp("roles")) as found:
        for role in ROLES:
            found.tokens[role] = found.token_file.add("ana", roles=(role,))[1]
        yield found


MCP_ARGUMENTS: dict[str, dict[str, Any]] = {
    "plan": {"request": "say hello"},
    "check": {"plan": "answer(1)\n"},
    "run": {"plan": "answer(1)\n"},
    "run_show": {"run": "r-1"},
    "run_cancel": {"run": "r-1"},
    "approval_ask": {"approval": "a-1"},
    "pattern_show": {"id": "R5"},
}
MCP_ALLOWED: dict[str, tuple[Role, ...]] = {
    "plan": ("run",),
    "check": ("run",),
    "run": ("run",),
    "run_show": ("see",),
    "run_cancel": ("run",),
    "runs_list": ("see",),
    "approvals_list": ("see", "approve"),
    "approval_ask": ("approve",),
    "patterns_list": ROLES,
    "pattern_show": ROLES,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("role", ROLES)
async def test_a_tool_is_for_the_roles_that_it_is_for(roles_served: ServedMcp, mode: str, role: Role) -> None:
    assert set(MCP_ALLOWED) == set(TOOLS)
    async with roles_served.client(mode, user=role, person=Person()) as client:
        for tool, roles in MCP_ALLOWED.items():
            result = await client.call_tool(tool, MCP_ARGUMENTS.get(tool, {}))
            if role in roles:
                assert "server.not-permitted" not in str(result.content), tool
            else:
                assert code(result) == "server.not-permitted", tool


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_with_a_token_that_may_not_approve_waits(roles_served: ServedMcp, mode: str) -> None:
    before, person = roles_served.posted(), Person()
    async with roles_served.client(mode, user="run", person=person) as client:
        told = facts(await client.call_tool("run", {"plan": FORWARD}))
    # The plan was endorsed, since it is the user's to run; the call was not put to anybody.
    assert (told["state"], len(person.asked)) == ("waiting", 1)
    assert roles_served.posted() == before
    async with roles_served.client(mode, user="approve", person=person) as client:
        answered = facts(await client.call_tool("approval_ask", {"approval": told["waits_for"][0]}))
    assert answered["state"] == "approved"
    async with roles_served.client(mode, user="see") as client:
        ended = facts(await client.call_tool("run_show", {"run": told["run"], "wait": 60}))
    assert ended["state"] == "finished"


def test_a_file_of_before_there_were_roles_holds_for_everything(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token, text = new_token("ana")
    old = {"id": token.id, "user": "ana", "hash": token.hash, "created": token.created}
    file.write_text(json.dumps({"version": 1, "tokens": [old]}))
    found = TokenFile(file).find_holder(text)
    assert found is not None
    assert found.roles == ROLES
    # A file in which every token has all roles can be read by what knew none.
    TokenFile(file).add("ben")
    assert json.loads(file.read_text())["version"] == 1
    assert "roles" not in file.read_text()


def test_a_file_with_roles_is_of_a_version_that_others_refuse(tmp_path: Path) -> None:
    """What knows no roles would take such a token for one that may do everything."""
    tokens = TokenFile(tmp_path / "tokens.json")
    token, text = tokens.add("ana", roles=("see",))
    assert json.loads((tmp_path / "tokens.json").read_text())["version"] == 2
    assert TokenFile(tokens.file).all_tokens() == (token,)
    assert (token.may("see"), token.may("run"), token.may("run", "see")) == (True, False, True)
    # A server that does not ask for tokens with some roles gets none.
    assert tokens.find_holder(text) is None
    assert tokens.find_holder(text, restricted=True) == token
    tokens.remove(token.id)
    assert json.loads((tmp_path / "tokens.json").read_text())["version"] == 1


def test_a_token_whose_roles_were_changed_does_not_hold_as_it_was_presented(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, text = tokens.add("ana", roles=("see", "run"))
    assert tokens.is_valid(token)
    written = (tmp_path / "tokens.json").read_text()
    (tmp_path / "tokens.json").write_text(written.replace('"see",', ""))
    assert not tokens.is_valid(token)
    changed = tokens.find_holder(text, restricted=True)
    assert changed is not None
    assert changed.roles == ("run",)


@pytest.mark.parametrize("roles", [(), ("admin",), ("see", "admin")])
def test_a_token_has_roles_that_there_are(roles: Any) -> None:
    with pytest.raises(ServerError, match=r"server\.bad-role"):
        new_token("ana", roles=roles)


@pytest.mark.parametrize("roles", ["[]", '["admin"]', '"see"'])
def test_a_file_with_roles_that_there_are_not_holds_nobody(tmp_path: Path, roles: str) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.add("ana", roles=("see",))
    written = json.loads((tmp_path / "tokens.json").read_text())
    written["tokens"][0]["roles"] = json.loads(roles)
    (tmp_path / "tokens.json").write_text(json.dumps(written))
    with pytest.raises(ServerError, match=r"server\.bad-tokens"):
        tokens.all_tokens()


def test_tokens_are_made_with_roles_at_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bicameral.cli.commands.serve import command

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def told(*words: str) -> Any:
        result = CliRunner().invoke(command, ["token", *words, "--json"], standalone_mode=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    assert told("add", "ana", "--role", "run", "--role", "see")["roles"] == ["see", "run"]
    assert told("add", "ben")["roles"] == list(ROLES)
    assert [each["roles"] for each in told("list")["tokens"]] == [["see", "run"], list(ROLES)]
    wrong = CliRunner().invoke(command, ["token", "add", "cat", "--role", "admin"])
    assert wrong.exit_code == 2
