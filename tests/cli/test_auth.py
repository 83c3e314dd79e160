"""Keys of providers in the keyring: kept, named, removed, and never shown."""

import pytest

from tests.cli.keyrings import give_keyring
from tests.cli.models import served, step
from tests.cli.project import Project
from tests.cli.terminal import Terminal

KEY = "sk-Kanarie-4711-abcdefgh"


def origins(project: Project, **env: str) -> dict[str, str | None]:
    answer = project.call("auth", "list", "--json", env=env)
    assert answer.code == 0, answer.err
    assert answer.json["schema"] == "holdfast.auth/1"
    return {row["provider"]: row["key"] for row in answer.json["providers"]}


@pytest.mark.req("I13")
def test_a_key_is_kept_named_and_removed(project: Project) -> None:
    kept = give_keyring(project)
    said = [project.ok("auth", "set", "openai", stdin=f"{KEY}\n".encode())]
    assert said[0].out == "the key of 'openai' is in your keyring\n"
    assert KEY in kept.read_text()
    assert origins(project)["openai"] == "keyring"
    assert origins(project)["anthropic"] is None
    said.append(project.ok("auth", "list"))
    assert "openai     keyring\n" in said[-1].out
    assert "mistral    none\n" in said[-1].out
    assert "ollama" not in said[-1].out
    said.append(project.ok("auth", "remove", "openai", "--json"))
    assert said[-1].json["providers"] == [{"provider": "openai", "key": None}]
    assert KEY not in kept.read_text()
    assert "no key of 'openai'" in project.refused(2, "auth", "remove", "openai")
    assert not any(KEY in text for answer in said for text in (answer.out, answer.err))


def test_a_variable_goes_before_the_keyring(project: Project) -> None:
    give_keyring(project)
    env = {"OPENAI_API_KEY": "sk-another-Kanarie"}
    answer = project.call("auth", "set", "openai", env=env, stdin=KEY.encode())
    assert answer.code == 0, answer.err
    assert "variable OPENAI_API_KEY goes before it" in answer.out
    assert origins(project, **env)["openai"] == "variable OPENAI_API_KEY"
    told = project.call("auth", "set", "openai", "--json", env=env, stdin=KEY.encode())
    assert told.json["providers"] == [{"provider": "openai", "key": "variable OPENAI_API_KEY"}]


def test_without_a_keyring_it_says_so_and_names_the_variable(project: Project) -> None:
    answer = project.call("auth", "set", "openai", stdin=KEY.encode())
    assert answer.code == 2
    assert "there is no keyring on this machine" in answer.err
    assert "OPENAI_API_KEY" in answer.err
    assert KEY not in answer.out + answer.err
    assert origins(project)["openai"] is None


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["openai"], b"", "that is not a key"),
        (["openai"], b"two\nlines", "that is not a key"),
        (["openai"], b"k" * 20_000, "that is not a key"),
        (["opnai"], b"key", "there is no provider 'opnai'"),
        (["ollama"], b"key", "'ollama' needs no key"),
    ],
)
def test_what_is_no_key_or_no_provider_is_refused(
    project: Project, words: list[str], given: bytes, said: str
) -> None:
    give_keyring(project)
    answer = project.call("auth", "set", *words, stdin=given)
    assert (answer.code, said in answer.err) == (2, True), answer.err


@pytest.mark.req("I13")
@pytest.mark.parametrize(
    "words", [["openai", KEY], ["openai", "--json", KEY, "more"], [KEY], ["openai", f"--key={KEY}"]]
)
def test_a_key_on_the_command_line_is_refused_and_not_repeated(
    project: Project, words: list[str]
) -> None:
    kept = give_keyring(project)
    answer = project.call("auth", "set", *words, stdin=b"another-key")
    assert answer.code == 2
    assert KEY not in answer.out + answer.err
    if words[-1] in {KEY, "more"} and len(words) > 1:
        assert "a key is never given on the command line" in answer.err
    assert not kept.exists()


@pytest.mark.req("I13")
@pytest.mark.parametrize("given", [KEY, "1KEY", "MY KEY", "MY-KEY", "${KEY}"])
def test_a_key_in_the_place_of_its_variable_is_refused_and_not_repeated(
    project: Project, given: str
) -> None:
    place = project.home / ".config" / "holdfast" / "config.toml"
    place.parent.mkdir(parents=True)
    place.write_text(f'[providers.inhouse]\nkind = "openai"\napi_key_env = "{given}"\n')
    project.plan({"a": {"prompt": "x", "model": "inhouse:m"}})
    for words in (["plan"], ["run", "--yes"], ["auth", "list"]):
        answer = project.call(*words)
        assert answer.code == 2
        assert "'providers.inhouse.api_key_env'" in answer.err
        assert "must be the name of a variable" in answer.err
        assert given not in answer.out + answer.err


def test_a_key_that_is_typed_is_not_shown(project: Project) -> None:
    kept = give_keyring(project)
    terminal = Terminal(project, "auth", "set", "openai")
    terminal.read(lambda text: "key of openai" in text)
    terminal.press(f"{KEY}\n".encode())
    terminal.finish()
    assert terminal.process.returncode == 0
    assert KEY in kept.read_text()
    assert KEY.encode() not in terminal.bytes


BROKEN = {"PYTHON_KEYRING_BACKEND": "bad.mod.Keyring"}
WHY = "the keyring cannot be used: ModuleNotFoundError: No module named 'bad'"


def test_a_keyring_that_is_broken_is_named_with_what_is_wrong(project: Project) -> None:
    listed = project.call("auth", "list", env={**BROKEN, "OPENAI_API_KEY": KEY})
    assert listed.code == 0, listed
    assert WHY in listed.err
    assert "openai     variable OPENAI_API_KEY\n" in listed.out
    assert "mistral    none\n" in listed.out
    kept = project.call("auth", "set", "openai", env=BROKEN, stdin=KEY.encode())
    assert (kept.code, WHY in kept.err, "OPENAI_API_KEY" in kept.err) == (2, True, True), kept
    assert WHY in project.refused(2, "auth", "remove", "openai", env=BROKEN)


def test_a_keyring_that_repeats_a_key_is_not_repeated(project: Project) -> None:
    kept = give_keyring(project)
    ring = kept.with_name("file_ring.py")
    said = "        raise RuntimeError(f'cannot keep {password}')\n"
    ring.write_text(ring.read_text().replace("password):\n", f"password):\n{said}", 1))
    answer = project.call("auth", "set", "openai", stdin=KEY.encode())
    assert answer.code == 2
    assert "the keyring cannot be used: RuntimeError: cannot keep [secret]" in answer.err
    assert KEY not in answer.out + answer.err


def test_a_run_goes_on_without_a_keyring_that_is_broken(project: Project) -> None:
    project.plan({"a": step()})
    with served(project, "an answer"):
        run = project.run("--yes", env=BROKEN)
        assert run.states == {"a": "done"}, run
        assert "Traceback" not in run.err
    with served(project, "an answer", provider='api_key_env = "NO_SUCH_KEY"'):
        project.plan({"a": step("say another thing")})
        told = project.call("run", "--yes", env=BROKEN)
        assert told.code == 4, told
        assert "there is no key for 'fake'" in told.err
        assert "Traceback" not in told.err
