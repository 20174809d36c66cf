"""Learning from outcomes: worlds made for plans, what the right plan does there, and which other plans do the same."""
