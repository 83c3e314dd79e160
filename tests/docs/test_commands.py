"""Every command explains itself, is documented, and speaks JSON where it shows data."""

import re
from collections.abc import Iterator

import click
import pytest

from holdfast.cli.catalogue import EXITS
from holdfast.cli.main import COMMANDS, PANELS, SHORT, cli
from tests.docs.session import TOP

CONTEXT = click.Context(cli, info_name="holdfast")
ONLY_WORDS = {"demo", "completion", "mcp"}  # what other commands say, a script, a protocol
HAND_WRITTEN = [
    (TOP / "README.md").read_text(encoding="utf-8"),
    *(page.read_text(encoding="utf-8") for page in sorted((TOP / "docs").glob("*.md"))),
    *(page.read_text(encoding="utf-8") for page in sorted((TOP / "docs/howto").glob("*.md"))),
]


def command(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


def leaves(name: str) -> Iterator[click.Command]:
    """The command itself, or those of a group."""
    found = command(name)
    if not isinstance(found, click.Group):
        yield found
        return
    for word in found.list_commands(CONTEXT):
        inner = found.get_command(CONTEXT, word)
        assert inner is not None
        yield inner


def test_every_command_has_one_panel_and_a_sentence() -> None:
    names = [name for names in PANELS.values() for name in names]
    assert sorted(COMMANDS) == sorted(SHORT) == sorted(names)
    assert all(SHORT[name].endswith(".") and len(SHORT[name]) <= 72 for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_explains_itself(name: str) -> None:
    found = command(name)
    assert found.help, "a docstring"
    assert f"Example:\n  holdfast {name}" in (found.epilog or ""), "an example"
    for leaf in leaves(name):
        for parameter in leaf.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, f"no help for {parameter.opts}"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - ONLY_WORDS))
def test_a_command_that_shows_data_speaks_json(name: str) -> None:
    for leaf in leaves(name):
        options = [word for parameter in leaf.params for word in parameter.opts]
        assert "--json" in options, leaf.name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_stands_in_a_page_that_somebody_wrote(name: str) -> None:
    shown = re.compile(rf"(?:holdfast |`){name}\b")
    assert any(shown.search(page) for page in HAND_WRITTEN), f"'{name}' is in no how-to page"


def test_the_exit_codes_of_the_help_the_catalogue_and_the_page_are_the_same() -> None:
    page = (TOP / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert listed == set(EXITS)
    epilog = (cli.epilog or "").replace("\b", "")
    assert {int(code) for code in re.findall(r"(?:^|\s)(\d+) [a-z]", epilog)} == listed - {141}
