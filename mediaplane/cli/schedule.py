"""`mediaplane schedule`: what is done again and again, and when."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, enum_name, last_part, local_moment, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command
from mediaplane.protocol.values import MissedRuns, ScheduleAction

app = typer.Typer(
    name="schedule",
    no_args_is_help=True,
    help="Have libraries rescanned, verified and kept in order at fixed times.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that `schedule list` shows.")]
Library = Annotated[
    str | None,
    typer.Option(
        "--library", metavar="SLUG", show_default=False,
        help="Only this library; for rescan and verify. All active ones by default.",
    ),
]  # fmt: skip
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone", metavar="ZONE", show_default=False,
        help="Whose clocks count, such as Europe/Berlin; UTC by default.",
    ),
]  # fmt: skip
Missed = Annotated[
    MissedRuns | None,
    typer.Option(
        "--missed-runs", show_default=False,
        help="Leave out runs whose time passed while nothing was running, or make up for all of"
        " them with one, which is the default.",
    ),
]  # fmt: skip


@command(app, "list", examples=["mediaplane schedule list", "mediaplane schedule list --json"])
def list_schedules(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the schedules. Times are those of your own clock."""
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        output.listing(
            operation.schedules(client, limit),
            noun="schedules",
            columns=[
                "NAME",
                "ACTION",
                "LIBRARY",
                "CRON",
                "ZONE",
                "NEXT RUN",
                "LAST RUN",
                "OUTCOME",
            ],
            cells=_cells,
            document=_document,
            as_json=as_json,
            empty="No schedule. Add one: mediaplane schedule add nightly rescan '0 3 * * *'",
        )


@command(app, "show", examples=["mediaplane schedule show rescan"])
def show(session: Session, name: Name, as_json: Json = False) -> None:
    """Show one schedule: what it does, its next three times, and how the last run went."""
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        schedule = operation.schedule(client, name)
    if as_json:
        output.json_document({"schedule": _document(schedule)})
    else:
        output.record(_fields(schedule))


@command(
    app,
    "add",
    examples=[
        "mediaplane schedule add nightly rescan '30 2 * * *' --time-zone Europe/Berlin",
        "mediaplane schedule add check-films verify '0 4 1 * *' --library films",
        "mediaplane schedule add weekly-sweep sweep @weekly --missed-runs skip",
    ],
)
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of a-z, 0-9 and -.")],
    action: Annotated[ScheduleAction, typer.Argument(help="What to do.", show_default=False)],
    cron: Annotated[str, typer.Argument(metavar="CRON", help="When, as in a crontab.")],
    library: Library = None,
    time_zone: TimeZone = None,
    missed_runs: Missed = None,
    disabled: Annotated[
        bool, typer.Option("--disabled", help="Do not run by itself yet; `schedule enable` does.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have something done again and again.

    CRON is minute, hour, day of the month, month and day of the week, each a number, a name, *, a
    range (1-5), a list (1,15) or a step (*/10); or @hourly, @daily, @weekly, @monthly, @yearly. A
    time that clocks show twice in the night they are set back counts once, and one that they leave
    out counts right after.
    """
    settings = _settings(action, cron, library, time_zone, missed_runs)
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        added = operation.add_schedule(client, name, **settings, is_enabled=not disabled)
    _show_done("Added", added, as_json=as_json)


@command(
    app,
    "set",
    examples=[
        "mediaplane schedule set nightly --cron '0 4 * * mon-fri'",
        "mediaplane schedule set nightly --all-libraries --missed-runs skip",
    ],
)
def set_settings(
    session: Session,
    name: Name,
    action: Annotated[
        ScheduleAction | None, typer.Option("--action", help="What to do.", show_default=False)
    ] = None,
    cron: Annotated[
        str | None, typer.Option("--cron", help="When; see `schedule add --help`.")
    ] = None,
    library: Library = None,
    all_libraries: Annotated[
        bool, typer.Option("--all-libraries", help="All active libraries, not only one.")
    ] = False,
    time_zone: TimeZone = None,
    missed_runs: Missed = None,
    as_json: Json = False,
) -> None:
    """Change what a schedule does and when. A run that is under way goes on."""
    if library and all_libraries:
        raise typer.BadParameter("give one library or all, not both.", param_hint="--library")
    settings = _settings(action, cron, library, time_zone, missed_runs)
    if all_libraries:
        settings["library"] = ""
    if not settings:
        raise typer.BadParameter("say what to change, such as --cron @daily; --help lists it all.")
    _change(session, name, "Changed", as_json=as_json, **settings)


@command(app, "enable", examples=["mediaplane schedule enable rescan"])
def enable(session: Session, name: Name, as_json: Json = False) -> None:
    """Have a schedule run by itself, from its next time on."""
    _change(session, name, "Enabled", as_json=as_json, is_enabled=True)


@command(app, "disable", examples=["mediaplane schedule disable rescan"])
def disable(session: Session, name: Name, as_json: Json = False) -> None:
    """Keep a schedule from running by itself; `schedule run` still can."""
    _change(session, name, "Disabled", as_json=as_json, is_enabled=False)


@command(app, "remove", examples=["mediaplane schedule remove nightly"])
def remove(session: Session, name: Name, as_json: Json = False) -> None:
    """Remove a schedule. Jobs that it has asked for go on."""
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        operation.remove_schedule(client, name)
    if as_json:
        output.json_document({"removed": last_part(name)})
    else:
        output.say(f"Removed {last_part(name)}")


@command(app, "run", examples=["mediaplane schedule run rescan"])
def run(session: Session, name: Name, as_json: Json = False) -> None:
    """Begin a run now, also of a schedule that is disabled; its next time stays as it is.

    The run is carried on by the planes that are running, such as those of `mediaplane up`.
    """
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        schedule = operation.run_schedule(client, name)
    if as_json:
        output.json_document({"schedule": _document(schedule)})
        return
    output.say(f"Began {last_part(schedule.name)}: {enum_name(schedule, 'last_outcome')}")
    if schedule.last_job:
        output.say(f"Next: mediaplane job watch {last_part(schedule.last_job)}")


def _settings(
    action: ScheduleAction | None,
    cron: str | None,
    library: str | None,
    time_zone: str | None,
    missed_runs: MissedRuns | None,
) -> dict[str, Any]:
    """What was given, by the fields of the message."""
    settings = {
        "action": _on_the_wire("ACTION", action),
        "cron": cron,
        "library": f"libraries/{last_part(library)}" if library else None,
        "time_zone": time_zone,
        "missed_runs": _on_the_wire("MISSED_RUNS", missed_runs),
    }
    return {field: value for field, value in settings.items() if value is not None}


def _change(session: Session, name: str, done: str, *, as_json: bool, **settings: Any) -> None:
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        changed = operation.change_schedule(client, name, **settings)
    _show_done(done, changed, as_json=as_json)


def _show_done(done: str, schedule: Any, *, as_json: bool) -> None:
    if as_json:
        output.json_document({"schedule": _document(schedule)})
        return
    output.say(f"{done} {last_part(schedule.name)}")
    if schedule.is_enabled:
        output.say(f"Next runs: {_upcoming(schedule)}")
    else:
        output.say(
            f"It is disabled; turn it on: mediaplane schedule enable {last_part(schedule.name)}"
        )


def _document(schedule: Any) -> dict[str, Any]:
    return {**document(schedule), "name": last_part(schedule.name)}


def _cells(schedule: Any) -> list[str]:
    outcome = enum_name(schedule, "last_outcome")
    return [
        last_part(schedule.name),
        enum_name(schedule, "action"),
        _library(schedule),
        schedule.cron,
        schedule.time_zone,
        local_time(schedule, "next_run_time") or "disabled",
        local_time(schedule, "last_run_time"),
        "" if outcome == "none" else outcome,
    ]


def _fields(schedule: Any) -> list[tuple[str, str]]:
    return [
        ("Name", last_part(schedule.name)),
        ("Action", enum_name(schedule, "action")),
        ("Library", _library(schedule)),
        ("Cron", schedule.cron),
        ("Time zone", schedule.time_zone),
        ("Missed runs", enum_name(schedule, "missed_runs")),
        ("Enabled", "yes" if schedule.is_enabled else "no"),
        ("Next runs" if schedule.is_enabled else "Would run", _upcoming(schedule)),
        ("Last run", local_time(schedule, "last_run_time")),
        ("Outcome", enum_name(schedule, "last_outcome")),
        ("Last job", last_part(schedule.last_job)),
        ("Error", schedule.last_error),
        ("Last skipped", local_time(schedule, "last_skip_time")),
        ("Because", schedule.last_skip_reason),
    ]


def _library(schedule: Any) -> str:
    has_libraries = enum_name(schedule, "action") in ("rescan", "verify")
    return last_part(schedule.library) or ("all" if has_libraries else "")


def _upcoming(schedule: Any) -> str:
    return ", ".join(map(local_moment, schedule.upcoming_run_times))


def _on_the_wire(prefix: str, value: StrEnum | None) -> str | None:
    return None if value is None else f"{prefix}_{value.name}"
