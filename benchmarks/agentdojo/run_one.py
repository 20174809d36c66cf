"""Run one oracle plan: `python -m benchmarks.agentdojo.run_one SUITE TASK`, with TASK like `3` or `user_task_3`."""

from __future__ import annotations

import sys

from bicameral.runs import Failed

from .adapter import PlanPipeline, plan_of
from .answers import answers
from .dojo import suite_of
from .executors import oracle


def main(name: str, task: str) -> int:
    task = task if task.startswith("user_task_") else f"user_task_{task}"
    suite = suite_of(name)
    pipeline = PlanPipeline(name, plan_of(name, task), oracle(answers(name).get(task, ())))
    user_task = suite.user_tasks[task]
    print(f"prompt: {user_task.PROMPT}\n")
    utility, _ = suite.run_task_with_pipeline(pipeline, user_task, None, {})
    for call in pipeline.calls:
        print(f"called {call.function}({', '.join(f'{key}={value!r}' for key, value in call.args.items())})")
    if isinstance(pipeline.outcome, Failed):
        print(f"failed: {pipeline.outcome.error!r} {pipeline.outcome.error}")
    print(f"\nanswer: {pipeline.answer}\n\nutility: {utility}")
    return 0 if utility else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
