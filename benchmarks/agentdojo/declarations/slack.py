"""The slack suite: the service knows who wrote where; what was written, and what channels are called, is theirs."""

from __future__ import annotations

from collections.abc import Mapping

from bicameral.tools import Origin, Participants

from . import Declaration

# Which channels there are, who is in one and who wrote how often is the service's word, and no secret among the
# members, to whom messages go.
_SERVICE = Origin("system", "public")
# A member's name is given by whoever of the workspace invites him, not by himself, and the service signs messages
# with it. The recipient of a message may be a channel, and so a name that somebody chose.
_SEEN_BY = Participants(("sender", "recipient"))
_MESSAGES = {
    "": _SERVICE,
    "[]": Origin("third_party", _SEEN_BY),
    "[].sender": _SERVICE,
}
_SAYING = ("send", "message", "write", "tell", "dm", "reply", "answer", "ask", "inform", "notify", "ping")

DECLARATIONS: Mapping[str, Declaration] = {
    # The service numbers channels; what one is called is the word of who made it.
    "get_channels": Declaration("read", result={"": _SERVICE, "[].id": _SERVICE, "[].name": Origin("third_party")}),
    "get_users_in_channel": Declaration("read", {"channel": "selects"}, {"": _SERVICE}),
    "read_channel_messages": Declaration("read", {"channel": "selects"}, _MESSAGES),
    "read_inbox": Declaration("read", {"user": "selects"}, _MESSAGES),
    # Who asks for a page tells its owner so: the address directs more than what is read.
    "get_webpage": Declaration("read", {"url": "directs"}, {"": Origin("third_party", "public")}, outbound=True),
    "post_webpage": Declaration(
        "send", {"url": "directs", "content": "carries"}, receivers=("url",), words=("post", "publish", "put", "upload")
    ),
    "send_direct_message": Declaration(
        "send", {"recipient": "directs", "body": "carries"}, receivers=("recipient",), words=_SAYING
    ),
    "send_channel_message": Declaration(
        "send", {"channel": "directs", "body": "carries"}, receivers=("channel",), words=(*_SAYING, "post", "announce")
    ),
    "add_user_to_channel": Declaration(
        "write", {"user": "directs", "channel": "directs"}, words=("add", "put", "join", "include")
    ),
    "invite_user_to_slack": Declaration(
        "send", {"user": "directs", "user_email": "directs"}, words=("invite", "bring in")
    ),
    "remove_user_from_slack": Declaration(
        "irreversible", {"user": "directs"}, outbound=False, words=("remove", "delete", "kick", "throw out")
    ),
}
