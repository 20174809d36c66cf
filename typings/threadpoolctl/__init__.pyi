from contextlib import AbstractContextManager
from typing import TypedDict

class _Library(TypedDict):
    user_api: str
    num_threads: int

class ThreadpoolController:
    def info(self) -> list[_Library]: ...
    def limit(self, *, limits: int, user_api: str | None = ...) -> AbstractContextManager[object]: ...
