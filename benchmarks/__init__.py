"""Programs that measure what the project claims; each prints one JSON object as its last line."""
