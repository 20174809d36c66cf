"""A music library: tracks, albums, playlists."""

from typing import Any

from bicameral.tools import tool


@tool(effect="read")
def track_search(query: str, genre: str = "", max_results: int = 50) -> list[dict[str, Any]]:
    """Find tracks; rows with uri, title, artist, album, year, seconds, plays."""
    raise NotImplementedError


@tool(effect="read")
def album_tracks(album: str, artist: str = "") -> list[dict[str, Any]]:
    """The tracks of an album in order; rows with uri, title, seconds, plays."""
    raise NotImplementedError


@tool(effect="read")
def playlist_tracks(playlist: str) -> list[dict[str, Any]]:
    """The tracks of a playlist; rows with uri, title, artist, seconds, plays, added."""
    raise NotImplementedError


@tool(effect="read")
def playlist_names() -> list[str]:
    """The names of my playlists."""
    raise NotImplementedError


@tool(effect="read")
def lyrics_of(uri: str) -> str:
    """The words of a song."""
    raise NotImplementedError


@tool(effect="read")
def artist_biography(artist: str) -> str:
    """A text about an artist."""
    raise NotImplementedError


@tool(effect="write", words=("playlist", "create", "make", "new", "start", "build"))
def playlist_create(playlist: str, uris: list[str]) -> None:
    """Make a playlist of these tracks."""
    raise NotImplementedError


@tool(effect="write", words=("add", "put", "append", "throw", "include", "stick"))
def playlist_add(playlist: str, uri: str) -> None:
    """Add a track to a playlist."""
    raise NotImplementedError


@tool(effect="write", words=("remove", "take", "kick", "drop", "throw", "out", "clean"))
def playlist_remove(playlist: str, uri: str) -> None:
    """Take a track out of a playlist."""
    raise NotImplementedError


@tool(effect="write", words=("play", "queue", "start", "listen", "put"))
def queue_track(uri: str) -> None:
    """Put a track into the play queue."""
    raise NotImplementedError


@tool(effect="write", words=("rate", "star", "stars", "like", "favourite", "favorite", "love", "heart"))
def rate_track(uri: str, stars: int) -> None:
    """Give a track one to five stars."""
    raise NotImplementedError


@tool(effect="irreversible", words=("delete", "scrap", "erase", "trash"))
def playlist_delete(playlist: str) -> None:
    """Delete a playlist."""
    raise NotImplementedError
