"""Notices a server of an older version, which does not know what a tenant is."""

from typing import Any

_UNDO = {
    "jobs": "mediaplane job cancel",
    "libraries": "mediaplane library remove",
    "tokens": "mediaplane token revoke",
}


def check(asked: str, made: Any) -> None:
    """Fail when what was made is not of the tenant that was asked for."""
    if not asked or made.tenant == asked:
        return
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    collection, _, name = made.name.partition("/")
    raise CommandFailed(
        f"The server has ignored the tenant {asked}, as versions do that know none: {made.name} is"
        f" of {f'the tenant {made.tenant}' if made.tenant else 'no tenant'}. Undo that with"
        f" `{_UNDO[collection]} {name}`, and upgrade the server."
    )
