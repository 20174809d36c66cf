"""What a session costs: a later call takes no more than an earlier one."""

from __future__ import annotations

from pathlib import Path

from firewall_world import make_stand


async def test_the_label_of_a_session_does_not_grow_with_its_calls(tmp_path: Path) -> None:
    session = make_stand(tmp_path).firewall.new_session()
    sizes: list[int] = []
    for _ in range(12):
        for name in ("notes_diary", "mail_list"):
            call = await session.start_call(name, {}, can_ask=False)
            assert call.task is not None
            assert not (await call.task).failed
        sizes.append(len(session.label.sources))
    await session.aclose()
    # Everything that it has read is still in it.
    assert {source.tool for source in session.label.sources} >= {"notes_diary", "mail_list"}
    assert len(set(sizes)) == 1
