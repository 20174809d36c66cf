"""What choosing a model costs, how soon a stream begins, and what becomes of calls when the server fails."""
