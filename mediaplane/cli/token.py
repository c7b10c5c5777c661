"""`mediaplane token`: who is let in from other machines, and as what."""

from typing import Annotated, Any

import typer

from mediaplane.cli import output, tenants
from mediaplane.cli.documents import document, enum_name, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

app = typer.Typer(
    name="token", no_args_is_help=True, help="Let callers in from other machines, and out again."
)

ROLES = ("viewer", "operator", "admin", "worker")


@command(
    app,
    "create",
    examples=[
        "mediaplane token create console --role viewer",
        "mediaplane token create monitoring --role worker --never",
        "mediaplane token create nightly-scan --role operator --tenant north --days 90 --json",
    ],
)
def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="Who or what will use it.", show_default=False)],
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="viewer (sees), operator (runs work as well), admin (decides as well), or worker"
            " (sees the workers alone).",
            show_default=False,
        ),
    ],
    tenant: Annotated[
        str,
        typer.Option("--tenant", help="The one tenant that it sees; else all.", show_default=False),
    ] = "",
    days: Annotated[
        float | None,
        typer.Option(
            "--days",
            help="Days until it expires; else 90, or as many as you may give.",
            show_default=False,
        ),
    ] = None,
    never: Annotated[
        bool,
        typer.Option(
            "--never", help="It never expires; only on the machine of the control plane itself."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a token and print it. It is shown this once: the database keeps only a hash of it.

    Whoever uses it sets MEDIAPLANE_TOKEN, or MEDIAPLANE_TOKEN_FILE to a file that holds it. The
    first token is made on the machine of the control plane itself, where none is needed.
    """
    if role not in ROLES:
        raise typer.BadParameter(f"choose one of {', '.join(ROLES)}.", param_hint="--role")
    if never and days is not None:
        raise typer.BadParameter("give either --days or --never.", param_hint="--never")
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        seconds = None if days is None else days * 24 * 3600
        made = operation.create_token(client, name, role, tenant, seconds, never_expires=never)
        tenants.check(tenant, made.token)
    if as_json:
        output.json_document(document(made.token) | {"secret": made.secret})
        return
    # The token alone on the standard output, so that it can go straight into a file.
    output.say(made.secret)
    end = local_time(made.token, "expire_time")
    output.tell(
        f"This is token {last_part(made.token.name)}; it cannot be shown again, and works"
        f" {f'until {end}' if end else 'until it is revoked'}."
        f" `mediaplane token revoke {last_part(made.token.name)}` takes it out of use."
    )


@command(app, "list", examples=["mediaplane token list", "mediaplane token list --json"])
def list_tokens(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the tokens, those that have expired or were revoked included; never the secrets."""
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        output.listing(
            operation.tokens(client, limit),
            noun="tokens",
            columns=[">TOKEN", "NAME", "ROLE", "TENANT", "EXPIRES", "REVOKED", "LAST USED"],
            cells=_cells,
            document=document,
            as_json=as_json,
            empty="There is no token; `mediaplane token create` makes one.",
        )


@command(
    app, "revoke", examples=["mediaplane token revoke 3", "mediaplane token revoke tokens/3 --json"]
)
def revoke(
    session: Session,
    token: Annotated[
        str, typer.Argument(help="The number that `token list` shows.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Take a token out of use for good. It stops working everywhere within a few seconds."""
    if token.startswith("mp_"):
        # It stands in the shell's history by now, which is one more reason to revoke it.
        raise typer.BadParameter(
            "give the number that `mediaplane token list` shows, not the token itself.",
            param_hint="TOKEN",
        )
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        revoked = operation.revoke_token(client, token)
    if as_json:
        output.json_document(document(revoked))
        return
    output.say(f"Token {last_part(revoked.name)} ({revoked.display_name}) is revoked.")


def _cells(token: Any) -> list[str]:
    return [
        last_part(token.name),
        token.display_name,
        enum_name(token, "role"),
        token.tenant or "all",
        local_time(token, "expire_time"),
        local_time(token, "revoke_time"),
        local_time(token, "last_use_time"),
    ]
