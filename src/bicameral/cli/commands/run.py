"""`bicameral run`: from a sentence, or from a plan file, to an answer."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, open_agent, run_until_terminated
from bicameral.cli._displays import ProgressDisplay, open_display
from bicameral.cli._options import CommonOptions, common_options, planning_options, plans_option, quarantine_option
from bicameral.cli._output import EXIT_CODES, FAILED, NO_PLAN, OK, terminal_people
from bicameral.cli._piped_input import read_material
from bicameral.cli._prompts import confirm_yes
from bicameral.cli._render import (
    checked_json,
    effects_text,
    executor_json,
    outcome_json,
    planned_json,
    say_budget,
    say_choice,
    say_degraded,
    say_doubts,
    say_quarantine,
    show_bindings,
    show_intent,
    show_outcome,
    show_plan,
    show_report,
)
from bicameral.errors import Place, PlanError
from bicameral.labels import user_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bicameral.agent import Agent, Checked, FirstLook, Material, Planned
    from bicameral.cli._pattern_runs import RoundsRunner
    from bicameral.cli.commands.check import PlanFile
    from bicameral.config import Config
    from bicameral.patterns import Outcome
    from bicameral.patterns.strategies import StrategyChoice
    from bicameral.planning import Intent
    from bicameral.plans import Plan
    from bicameral.runs import Doubt, RunOutcome


@dataclass(frozen=True)
class RunOptions:
    """How a run was asked for."""

    deterministic: bool = False
    fresh: bool = False
    dry_run: bool = False
    yes: bool = False
    rounds: int | None = None
    strategy: str | None = None
    """None: as configured."""
    plans: int | None = None
    """How many more plans are drawn where the first is doubtful; None: as configured."""
    input_name: str | None = None
    """What `--input` says."""
    no_input: bool = False


def _is_file_name(request: str) -> bool:
    """Whether a request is nothing but the name of a file that is there."""
    return not any(map(str.isspace, request)) and os.path.isfile(request)


@click.command(short_help="Do what a request asks for: plan it, check it, run it.")
@click.argument("request", required=False)
@click.option("--plan", "plan_file", metavar="FILE", help="Run this plan file instead of planning a request.")
@click.option("--dry-run", is_flag=True, help="Plan and check, show what would change in files, and change nothing.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    help="Work in rounds, at most so many: a plan may look at results and be followed by another.",
)
@click.option(
    "--strategy",
    type=click.Choice(["compiled", "native_react", "plan_and_execute", "spar", "auto"]),
    help="How to go about it: one whole plan that is proved first, or tools called as a conversation goes on; auto "
    "chooses by the request, and says why.",
)
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask before sending something, replacing a file or changing something for good.",
)
@click.option(
    "--input",
    "input_name",
    metavar="FILE",
    help="The text that the request is about, or that the plan reads; - for standard input.",
)
@click.option("--no-input", is_flag=True, help="Do not look whether a text is piped into the command.")
@plans_option
@planning_options
@quarantine_option
@common_options
def command(
    chosen: CommonOptions,
    request: str | None,
    plan_file: str | None,
    deterministic: bool,
    fresh: bool,
    dry_run: bool,
    rounds: int | None,
    strategy: str | None,
    yes: bool,
    input_name: str | None,
    no_input: bool,
    plans: int | None,
) -> int:
    """Do what REQUEST asks for: write a plan, check it, run it, and print the answer.

    The answer goes to standard output; intent, plan, findings and progress go to standard error. At a terminal you
    are asked before anything is sent or changed for good, and about each call that policy does not allow on its own,
    exactly as it would be made. Where nobody can be asked, such a call is not made, whatever --yes says.

    A text that is piped into the command is what the request is about: `cat notes.txt | bicameral run "summarise"`.
    It counts as anybody's text: the planner never reads it, and it decides nothing. A plan file reads it as the
    variable input_text or input_lines, and a list of tasks as the input of its first task:
    `bicameral run --plan tasks.json < mail.txt`.
    """
    if (request is None) == (plan_file is None):
        raise click.UsageError("Give a request, or a plan file with --plan.")
    if request is not None and _is_file_name(request):
        raise click.UsageError(
            f"{request} is a file: run it as a plan with --plan {request}, or say what is to be done with it."
        )
    if rounds is not None and (plan_file is not None or dry_run):
        raise click.UsageError("--rounds goes with a request, and without --dry-run: later plans depend on results.")
    if strategy not in (None, "compiled") and (plan_file is not None or dry_run or rounds is not None):
        raise click.UsageError(f"--strategy {strategy} goes with a request: it has no plan that could be read first.")
    conversation = rounds is not None or strategy not in (None, "compiled")
    if input_name is not None and (conversation or no_input):
        raise click.UsageError("--input goes with one plan: without --rounds, another strategy and --no-input.")
    if plan_file == input_name == "-":
        raise click.UsageError("Standard input cannot be both the plan and what it reads: name a file for one of them.")
    config = chosen.config()
    wishes = RunOptions(deterministic, fresh, dry_run, yes, rounds, strategy, plans, input_name, no_input)
    # Read before anything else: what is wrong with it is told at once, and not after a minute of planning.
    unread = plan_file is not None or conversation
    material = None if unread else read_material(chosen.out, input_name, ignored=no_input)
    sitting = RunCommand(chosen, config, wishes, material)
    if chosen.model is not None and (plan_file is not None or sitting.is_conversation):
        raise click.UsageError("--model names the model that writes a plan: it goes with a request that gets one.")
    if plan_file is not None:
        return asyncio.run(run_until_terminated(sitting.run_file(plan_file)))
    sitting.fetch_weights()
    return asyncio.run(run_until_terminated(sitting.run_request(request or "")))


class RunCommand:
    """One run at the command line, from what was asked to the exit code."""

    def __init__(
        self, chosen: CommonOptions, config: Config, wishes: RunOptions, material: Material | None = None
    ) -> None:
        self._out, self._config, self._wishes = chosen.out, config, wishes
        self._material, self._model = material, chosen.model
        self._choice: StrategyChoice | None = None

    def fetch_weights(self) -> None:
        """Fetch what planning needs, before anything else is shown."""
        fetch_missing_weights(
            self._out, self._config, ["privileged"] if self._strategy is None else ["privileged", "quarantined"]
        )

    @property
    def is_conversation(self) -> bool:
        """Whether no plan is written: tools are called as a conversation goes on."""
        return self._strategy is not None

    @property
    def _strategy(self) -> str | None:
        """The conversation that was asked for or is configured; None for a compiled plan."""
        wishes = self._wishes
        configured = self._config.agent.planning_strategy
        compiled = wishes.dry_run or wishes.rounds is not None or self._material is not None
        # Who names the model that writes a plan wants one.
        compiled = compiled or (configured == "auto" and self._model is not None)
        name = wishes.strategy or (None if compiled else configured)
        return None if name == "compiled" else name

    async def run_request(self, request: str) -> int:
        from bicameral.agent import FirstLook, Planned
        from bicameral.telemetry import span

        async with open_agent(self._config) as agent:
            # One trace for the whole request, and one budget for planning and running.
            with span("bicameral run"), agent.spending():
                if self._strategy is not None:
                    self._choice = await agent.choose_strategy(user_input(request), self._strategy)
                    if self._choice.is_automatic:
                        self._out.say(f"strategy: {self._choice}", style="dim")
                if self._choice is not None and self._choice.strategy != "compiled":
                    from bicameral.cli._pattern_runs import StrategyRunner

                    return await StrategyRunner(self._out, careful=not self._wishes.yes).run_request(
                        agent, request, self._choice
                    )
                if self._wishes.rounds is not None:
                    runner = self._rounds_runner()
                    return runner.report(await self._reason(runner, agent, request, self._wishes.rounds))
                found = await self.plan_or_look(agent, request)
                if isinstance(found, FirstLook):
                    found = await self.look_first(agent, found)
                if isinstance(found, Planned):
                    return (await self.execute(agent, found, planned_json(found)))[0]
                return EXIT_CODES[found.ending]

    async def plan_or_look(self, agent: Agent, request: str) -> Planned | FirstLook:
        """The plan, shown as a whole; or why a first look decides what to do, which a dry run cannot take."""
        from bicameral.agent import FirstLook, Planned, plan_or_look

        with open_display(self._out) as shown:
            asker, _ = terminal_people(self._out, agent.registry, shown.quiet)
            shown.phase("planning")
            plan = agent.plan if self._wishes.dry_run else partial(plan_or_look, agent)
            options = self._plan_options(shown)
            if self._material is not None:
                # Rounds would begin without the text.
                plan, options["material"] = agent.plan, self._material
            found = await plan(user_input(request), asker=asker, **options)
            if isinstance(found, Planned) and self._choice is not None and self._choice.is_automatic:
                found = replace(found, strategy_choice=self._choice.to_json())
            shown.close()
        if not isinstance(found, FirstLook):
            self._show_planned(agent, found)
        return found

    async def look_first(self, agent: Agent, found: FirstLook) -> Outcome[Any] | Planned:
        """Rounds by themselves, and their outcome, which is shown.

        If they lead to nothing and change nothing: the plan that there was before, shown and to be run; or the refusal.
        """
        most = self._config.planning.rounds
        self._out.say(f"working in rounds, at most {most}: {found.reason}", style="dim")
        runner = self._rounds_runner()
        chosen = self._choice is not None and self._choice.is_automatic
        why = f"{found.reason}; strategy: {self._choice}" if chosen else found.reason
        reasoned = await self._reason(runner, agent, found.intent, most, why)
        planned = found.fall_back(reasoned)
        if planned is None:
            runner.report(reasoned)
            return reasoned
        self._out.say("the rounds led to nothing and changed nothing; running the plan at once", style="dim")
        self._show_planned(agent, planned)
        return planned

    def _rounds_runner(self) -> RoundsRunner:
        from bicameral.cli._pattern_runs import RoundsRunner

        async def may(plan: Plan, checked: Checked) -> bool:
            if not await self._confirm_effects(checked):
                return False
            await self._fetch_quarantined(plan)
            return True

        return RoundsRunner(self._out, may)

    async def _reason(
        self, runner: RoundsRunner, agent: Agent, request: str | Intent, rounds: int, why: str = ""
    ) -> Outcome[Any]:
        wishes = self._wishes
        return await runner.reason(
            agent, request, rounds, deterministic=wishes.deterministic, fresh=wishes.fresh, why=why
        )

    async def run_file(self, name: str) -> int:
        from bicameral.binding import binding_doubts
        from bicameral.plans import print_plan

        async with open_agent(self._config) as agent:
            file = self._read_plan_file(name, agent)
            start = None if self._material is None else await agent.piped_start(file.plan, self._material)
            asker, _ = terminal_people(self._out, agent.registry, nullcontext)
            bound = await agent.bind(file.plan, asker=asker, scope=None if start is None else start.types)
            for note in file.notes:
                self._out.say(f"  note: {note}")
            show_plan(self._out, print_plan(bound.shown_plan(file.plan), agent.registry))
            show_bindings(self._out, bound.bindings)
            bound.require()
            checked = agent.check(bound.plan, places=bound.moved_places(file.places), start=start)
            show_report(self._out, checked.report, checked.proof, briefly=True)
            say_budget(self._out, agent, checked.report)
            say_quarantine(self._out, agent, checked.report)
            facts = {"plan": bound.plan.model_dump(mode="json"), **checked_json(checked)}
            facts["bindings"] = [each.to_json() for each in bound.bindings]
            facts["notes"] = list(file.notes)
            doubts = binding_doubts(bound.bindings)
            say_doubts(self._out, doubts)
            facts["doubts"] = [doubt.to_json() for doubt in doubts]
            return (await self.execute(agent, checked, facts, doubts))[0]

    def _read_plan_file(self, name: str, agent: Agent) -> PlanFile:
        """The plan of a file; the text that is piped into it is read if it reads one, and only then."""
        from bicameral.agent import input_variables
        from bicameral.cli.commands.check import read_plan

        wishes, file = self._wishes, read_plan(name, agent.registry, piped=True)
        if not input_variables(file.plan):
            if wishes.input_name is None:
                return file
            raise PlanError(
                "plan.input-unused",
                "--input names a text, and the plan reads none",
                place=Place(file=name),
                fix="Leave --input out, or let the plan read input_text or input_lines.",
            )
        # A plan on standard input has used it up.
        ignored = wishes.no_input or (name == "-" and wishes.input_name is None)
        self._material = read_material(self._out, wishes.input_name, ignored=ignored)
        if self._material is None and file.is_task_list and self._out.is_interactive and name != "-":
            return read_plan(name, agent.registry)
        if self._material is None:
            raise PlanError(
                "plan.no-input",
                "the plan reads its standard input, and there is nothing on it",
                place=Place(file=name),
                fix=f"Pipe a text into it (`bicameral run --plan {name} < mail.txt`), or name a file with --input.",
            )
        return file

    def _plan_options(self, shown: ProgressDisplay) -> dict[str, Any]:
        wishes = self._wishes
        return {
            "deterministic": wishes.deterministic,
            "fresh": wishes.fresh,
            "watch": shown.statement,
            "plans": wishes.plans,
        }

    def _show_planned(self, agent: Agent, planned: Planned) -> None:
        show_intent(self._out, planned.intent)
        show_plan(self._out, planned.source)
        show_bindings(self._out, planned.bindings)
        # Before anybody is asked whether it may run, and again before the answer.
        say_doubts(self._out, planned.doubts)
        show_report(self._out, planned.report, planned.proof, briefly=True)
        say_choice(self._out, planned.choice)
        say_degraded(self._out, planned.degraded)
        say_budget(self._out, agent, planned.report)
        say_quarantine(self._out, agent, planned.report)

    async def execute(
        self, agent: Agent, what: Planned | Checked, facts: dict[str, Any], doubts: Sequence[Doubt] = ()
    ) -> tuple[int, RunOutcome | None]:
        """Run a plan that was shown, unless it may not run, should not, or the person says no.

        `doubts` are those of a plan file; a `Planned` has its own.
        """
        from bicameral.agent import Planned

        checked = what.checked if isinstance(what, Planned) else what
        if not checked.ok:
            self._out.write_json({"ok": False, **facts})
            return NO_PLAN, None
        if self._wishes.dry_run:
            previews = await agent.preview(what)
            for each in previews:
                self._out.say(each.text)
            self._out.say("nothing was run (--dry-run)")
            changes = [each.to_json() for each in previews]
            self._out.write_json({"ok": True, "dry_run": True, **facts, "changes": changes})
            return OK, None
        if not await self._confirm_effects(checked):
            self._out.say("not run")
            return FAILED, None
        await self._fetch_quarantined(what.plan)
        with open_display(self._out) as shown:
            shown.phase("running")
            request = what.intent.request if isinstance(what, Planned) else ""
            asker, approver = terminal_people(self._out, agent.registry, shown.quiet, request)
            people: dict[str, Any] = {"asker": asker, "approver": approver, "may_replace": self._wishes.yes}
            # What was planned for a request has its material already.
            material = None if isinstance(what, Planned) else self._material
            outcome = await agent.run(what, observer=shown.step, doubts=doubts, material=material, **people)
        show_outcome(self._out, outcome, what.spent if isinstance(what, Planned) else None)
        told = outcome_json(outcome)
        # The run knows the doubts of planning, too.
        self._out.write_json(told | facts | executor_json(agent) | {"doubts": told["doubts"]})
        return outcome_exit_code(outcome), outcome

    async def _confirm_effects(self, checked: Checked) -> bool:
        """Ask once, where someone is there, before what cannot be taken back. The request itself is the authority.

        A plan of which every such call will be put to the person in the run, to the letter, need not be asked about
        twice.
        """
        grave = [use.path for use in checked.report.effects if use.effect in ("send", "irreversible")]
        if self._wishes.yes or not self._out.is_interactive or all(_is_asked_about(checked, path) for path in grave):
            return True
        return await confirm_yes(f"This plan {effects_text(checked.report)}. Run it?")

    async def _fetch_quarantined(self, plan: Plan) -> None:
        from bicameral.plans import Extract, walk

        if any(isinstance(step, Extract) for _, step in walk(plan.steps)):
            fetch_missing_weights(self._out, self._config, ["quarantined"])


def _is_asked_about(checked: Checked, path: str) -> bool:
    from bicameral.plans import Conditional

    verdict = checked.proof.verdict(path) if checked.proof is not None else None
    return isinstance(verdict, Conditional) and bool(verdict.questions)


def outcome_exit_code(outcome: RunOutcome) -> int:
    """The exit code of a run."""
    from bicameral.runs import ending_of

    return EXIT_CODES[ending_of(outcome)]
