"""Makes, lists and revokes API keys, in a file that a running service follows."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deployments.commands import CommandError

HELP = "make, list and revoke API keys"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION", dest="action")
    create = actions.add_parser("create", help="make a key, print it once, keep its hash")
    create.add_argument("--client", required=True, help="whose key it is")
    listing = actions.add_parser("list", help="list clients and the ids of their keys")
    revoke = actions.add_parser("revoke", help="remove a key")
    revoke.add_argument("id", help="of the key, as list shows it")
    for action in (create, listing, revoke):
        action.add_argument(
            "--file", type=Path, default=Path("keys.yaml"), help="default: %(default)s"
        )


def run(options: argparse.Namespace) -> int:
    from deployments.guards.keys_file import KeysFileError

    actions = {"create": _create, "list": _list, "revoke": _revoke}
    try:
        actions[options.action](options)
    except KeysFileError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{options.file}: {error.strerror}") from error
    return 0


def _create(options: argparse.Namespace) -> None:
    from deployments.guards import keys
    from deployments.guards.keys_file import editing

    key = keys.make_key()
    hashed = keys.hash_key(key)
    try:
        client = keys.checked_client(options.client)
    except ValueError as error:
        raise CommandError(str(error)) from error
    with editing(options.file) as content:
        content.add(client, hashed)
    print(key)
    print(
        f"the key is shown only now; in lists, in logs and to revoke, its id is "
        f"{keys.key_id(hashed)}",
        file=sys.stderr,
    )


def _list(options: argparse.Namespace) -> None:
    from deployments.guards.keys import key_id
    from deployments.guards.keys_file import load

    for name, client in load(options.file).clients.items():
        for key in client.keys:
            print(f"{key_id(key.hash)}  {key.created or '-':<10}  {name}")


def _revoke(options: argparse.Namespace) -> None:
    from deployments.guards.keys_file import editing, load

    load(options.file)  # where there is none, none is made
    with editing(options.file) as content:
        client = content.revoke(options.id)
        if client is None:
            raise CommandError(f"{options.file}: there is no key {options.id}")
    print(f"removed a key of {client}")
