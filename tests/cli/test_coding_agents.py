"""Coding agents of the command line, as workers of tickets."""

import json
import signal
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.coders import CHECK, FILES, MEAN, WANTED, adds, coder, program, speaker
from tests.cli.project import Project, kill, until
from tests.cli.tickets import at, git, log_of, repository, ticket, work, worked

BRANCH = "holdfast/mean"


def hired(project: Project, words: str, *more: str) -> tuple[str, ...]:
    repository(project, FILES)
    return (ticket(project, WANTED), "--agent", words, *CHECK, *more)


def story(project: Project) -> str:
    return project.ok("logs", "cycle-1").out


@pytest.mark.req("R184")
def test_an_agent_does_a_ticket_and_hears_what_the_checks_say(project: Project) -> None:
    body = (
        "assert 'Give the mean of heights' in prompt and 'checked by: python3 check.py' in prompt\n"
        "if 'mean is wrong' in prompt:\n"
        "    text = pathlib.Path('tides.py').read_text()\n"
        "    pathlib.Path('tides.py').write_text(text.replace('sum(values)', 'sum(values) / len(values)'))\n"
        "else:\n"
        f"    {adds(MEAN.replace(' / len(values)', ''))}"
        "print('The mean is there.')\n"
    )
    found = worked(project, *hired(project, coder(project, body)))
    assert found["exit"] == 0, found["err"]
    assert found["ready"]
    assert at(project, BRANCH, "tides.py") == FILES["tides.py"] + MEAN
    subjects = git(project, "log", "--format=%an: %s", f"main..{BRANCH}").splitlines()
    assert subjects[-1] == "Ann Example: Give the mean of heights"
    assert git(project, "status", "--porcelain") == ""
    codes = [(row["cmd"].split("/")[-1], row["exit_code"]) for row in log_of(found)["commands"]]
    assert codes == [
        ("coder.py '{prompt_file}'", 0),
        ("python3 check.py", 1),
        ("coder.py '{prompt_file}'", 0),
        ("python3 check.py", 0),
    ]
    assert "The mean is there." in story(project)


@pytest.mark.req("R184")
def test_an_agent_that_fails_delivers_nothing(project: Project) -> None:
    said = "print('x' * 3_000 + '\\nno key', file=sys.stderr)\n"
    words = coder(project, f"{said}sys.exit(3)\n")
    answer = work(project, *hired(project, words))
    assert answer.code == 1
    assert "ended with exit code 3" in answer.out
    assert "no key" in answer.out
    assert "x" * 400 not in answer.out
    assert git(project, "branch", "--list", BRANCH) == ""


def test_an_agent_that_ends_well_and_changes_nothing_has_not_done_the_ticket(
    project: Project,
) -> None:
    answer = work(project, *hired(project, coder(project, "print('all is fine')\n")))
    assert answer.code == 1
    assert "it changed nothing" in answer.out
    assert git(project, "branch", "--list", BRANCH) == ""


def test_what_an_agent_did_before_it_failed_is_kept_and_the_next_cycle_goes_on(
    project: Project,
) -> None:
    body = (
        f"if not pathlib.Path('half.txt').exists():\n    {adds()}"
        f"    pathlib.Path('half.txt').write_text('half')\n    sys.exit(1)\n"
        "pathlib.Path('half.txt').write_text('whole')\n"
    )
    found = worked(project, *hired(project, coder(project, body)))
    assert (found["exit"], found["ready"]) == (0, True)
    assert at(project, BRANCH, "half.txt") == "whole"
    assert found["cycles"] == 2


def test_an_agent_that_hangs_is_ended(project: Project) -> None:
    body = f"{adds('# half')}os.execvp('tail', ['tail', '-f', {str(project.log)!r}])\n"
    words = hired(project, coder(project, body), "--agent-time", "1s", "--scope", "other/**")
    answer = work(project, *words)
    assert answer.code == 1
    assert "did not end within 1 s" in answer.out
    held = str(project.log).encode()
    assert not any(held in line for line in _cmdlines())
    assert git(project, "branch", "--list", BRANCH) == ""


def _cmdlines() -> list[bytes]:
    """What all processes were started with; one may end while it is looked at."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found


@pytest.mark.req("R184", "R130")
def test_an_agent_cannot_leave_its_worktree_nor_its_scope(project: Project) -> None:
    project.granted = project.gates
    outside = project.folder / "outside.txt"
    outside.write_text("mine\n")
    body = (
        "def attempt(path):\n"
        "    try:\n"
        "        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)\n"
        "        pathlib.Path(path).write_text('taken')\n"
        "    except OSError as error:\n"
        "        print('refused', path, error.strerror)\n"
        f"attempt({str(outside)!r})\n"
        f"attempt({str(project.root / 'tides.py')!r})\n"
        f"os.symlink({str(project.folder)!r}, 'way')\n"
        "attempt('way/outside.txt')\n"
        "attempt('.git/hooks/pre-commit')\n"
        "attempt('.github/workflows/ci.yml')\n"
        "attempt('.claude/settings.json')\n"
        "attempt('notes.txt')\n" + adds()
    )
    found = worked(project, *hired(project, coder(project, body), "--scope", "*.py"))
    assert (found["exit"], found["ready"]) == (0, True)
    assert outside.read_text() == "mine\n"
    assert project.read("tides.py") == FILES["tides.py"]
    kept = git(project, "ls-tree", "-r", "--name-only", BRANCH).split()
    assert kept == ["check.py", "tickets/mean/task_tree.yaml", "tides.py"]
    told = story(project)
    assert '"notes.txt" is outside the write scope' in told
    assert '".claude/settings.json" is protected' in told


@pytest.mark.req("R184")
@pytest.mark.parametrize("is_speaker", [False, True])
def test_an_agent_that_writes_into_the_task_tree_loses_nothing_else(
    project: Project, is_speaker: bool
) -> None:
    tree = "tickets/mean/task_tree.yaml"
    if is_speaker:
        body = (
            f"top, prompt, number = begin()\n{adds()}"
            f"say(str(ask('fs/write_text_file', path=f'{{top}}/{tree}', content='mine')))\nend(number)\n"
        )
        words = speaker(project, body)
    else:
        words = coder(project, f"os.makedirs('tickets/mean')\n{adds('mine', tree)}{adds()}")
    found = worked(project, *hired(project, words))
    assert (found["exit"], found["ready"]) == (0, True), found["err"]
    assert at(project, BRANCH, "tides.py") == FILES["tides.py"] + MEAN
    assert "mine" not in at(project, BRANCH, tree)
    told = story(project)
    assert f"'{tree}' belongs to the task tree" in told
    assert "it changed tides.py" in told
    assert ("taken back" in told) is not is_speaker


@pytest.mark.req("R184")
def test_an_agent_finds_nothing_but_the_files_of_its_worktree(project: Project) -> None:
    project.granted = project.gates
    body = (
        "names = sorted(os.listdir())\n"
        "subprocess.run('rm -rf * && git checkout-index -a', shell=True, check=True)\n"
        f"os.mkdir('.github')\n{adds('on: push', '.github/ci.yml')}{adds()}"
        "print('it saw', names)\n"
    )
    found = worked(project, *hired(project, coder(project, body)))
    assert found["exit"] == 0, found["err"]
    told = story(project)
    assert "it saw ['.git', 'check.py', 'tides.py']" in told
    assert "'.github/ci.yml' is protected" in told.replace('"', "'")
    assert git(project, "ls-tree", "--name-only", BRANCH).split() == [
        "check.py",
        "tickets",
        "tides.py",
    ]


@pytest.mark.req("R184", "D37")
def test_an_agent_does_not_see_what_the_repository_configures_for_agents(project: Project) -> None:
    project.granted = project.gates
    names = (".env", ".aider.conf.yml", ".mcp.json", ".claude/settings.json", "CLAUDE.md")
    for name in names:
        project.write(name, "OPENAI_BASE_URL=http://127.0.0.1:9/v1")
    body = (
        f"seen = [name for name in {names!r}"
        " if os.path.isfile(name) and pathlib.Path(name).read_text()]\n"
        f"print('it saw', seen)\n{adds()}"
    )
    found = worked(project, *hired(project, coder(project, body)))
    assert found["exit"] == 0, found["err"]
    assert "it saw ['CLAUDE.md']" in story(project)
    assert at(project, BRANCH, ".env") == "OPENAI_BASE_URL=http://127.0.0.1:9/v1"


@pytest.mark.req("R184")
def test_commits_of_an_agent_are_neither_lost_nor_ours(project: Project) -> None:
    body = adds() + (
        "subprocess.run(['git', '-c', 'user.name=agent', '-c', 'user.email=a@localhost',"
        " 'commit', '-qam', 'work of the agent'], check=True)\n"
    )
    found = worked(project, *hired(project, coder(project, body), "--no-sandbox"))
    assert (found["exit"], found["ready"]) == (0, True)
    assert at(project, BRANCH, "tides.py") == FILES["tides.py"] + MEAN
    assert "agent" not in git(project, "log", "--all", "--format=%an %s")


@pytest.mark.req("R184", "R135")
def test_after_a_kill_the_agent_begins_with_the_files_as_they_were_before_it(
    project: Project,
) -> None:
    body = (
        "assert 'half' not in pathlib.Path('tides.py').read_text(), 'it goes on with half of it'\n"
        f"{adds('# half')}"
        f"with open({str(project.log)!r}, 'a') as file: file.write('coder\\n')\n"
        f"subprocess.run({project.gate('go')!r}, shell=True, check=True)\n"
        f"pathlib.Path('tides.py').write_text({FILES['tides.py'] + MEAN!r})\n"
    )
    words = hired(project, coder(project, body))
    process = project.begun_by("work", *words, "--quiet", step="coder")
    kill(process)
    until(lambda: not project.has_at_gate("go"), "the agent of the dead engine ends")
    project.open("go")
    found = worked(project, *words)
    assert (found["exit"], found["ready"]) == (0, True)
    assert at(project, BRANCH, "tides.py") == FILES["tides.py"] + MEAN
    assert project.ran() == ["coder", "coder"]


@pytest.mark.req("R184")
def test_an_agent_sees_a_key_only_if_the_person_lets_it(project: Project) -> None:
    body = f"{adds()}print('key', os.environ.get('AGENT_KEY', 'none'), os.environ.get('OTHER', 'none'))\n"
    words = hired(project, coder(project, body))
    env = {"AGENT_KEY": "sk-very-secret-0123", "OTHER": "x"}
    alone = project.call("work", *words, "--quiet", env=env)
    assert alone.code == 0, alone.err
    assert "key none none" in story(project)
    more = (words[0], "--id", "second", *words[1:], "--secret", "AGENT_KEY", "--quiet")
    allowed = project.call("work", *more, env=env)
    assert allowed.code == 0, allowed.err
    assert "key none" not in story(project)
    assert not any(
        env["AGENT_KEY"].encode() in path.read_bytes()
        for path in project.store.rglob("*")
        if path.is_file()
    )
    again = project.call("work", "second", "--quiet", env=env)
    assert again.code == 2
    assert "--secret AGENT_KEY" in again.err


def test_a_file_with_the_key_of_the_person_is_not_kept(project: Project) -> None:
    body = (
        f"{adds()}pathlib.Path('deep').mkdir()\n"
        "pathlib.Path('deep/key.txt').write_text('key: ' + os.environ['AGENT_KEY'])\n"
        "pathlib.Path('check.py').open('a').write('# ' + os.environ['AGENT_KEY'])\n"
    )
    words = (*hired(project, coder(project, body)), "--secret", "AGENT_KEY", "--quiet")
    key = "sk-very-secret-0123"
    answer = project.call("work", *words, env={"AGENT_KEY": key})
    assert answer.code == 0, answer.err
    assert at(project, BRANCH, "check.py") == FILES["check.py"]
    assert "key.txt" not in git(project, "ls-tree", "-r", "--name-only", BRANCH)
    assert "'deep/key.txt' holds a secret" in story(project)
    places = [path for path in project.home.rglob("*") if path.is_file()]
    assert not any(key.encode() in _unpacked(path) for path in places)


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    try:
        return zlib.decompress(content)
    except zlib.error:
        return content


@pytest.mark.req("R184")
def test_a_preset_tells_what_its_agent_used(project: Project) -> None:
    told = {
        "type": "result",
        "result": "Added the mean.",
        "total_cost_usd": 0.0125,
        "usage": {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 50},
    }
    body = (
        "assert sys.argv[1:] == ['--print', '--output-format', 'json', '--model', 'small',"
        " '--permission-mode', 'bypassPermissions'], sys.argv\n"
        "assert 'Give the mean of heights' in sys.stdin.read()\n"
        "assert os.environ['IS_SANDBOX'] == '1' and 'ANTHROPIC_API_KEY' not in os.environ\n"
        f"{adds()}print({json.dumps(told)!r})\n"
    )
    path = program(project, "claude", body)
    words = hired(project, "claude --model small")
    env = {"PATH": path, "ANTHROPIC_API_KEY": "sk-nobody-allowed-it"}
    answer = project.call("work", *words, "--quiet", "--json", env=env)
    assert answer.code == 0, answer.err
    assert "it says that it used 1000 tokens in, 50 out, $0.0125" in story(project)


def test_an_agent_without_a_network_says_what_it_takes(project: Project) -> None:
    body = "print('litellm.APIConnectionError: Connection error.')\nsys.exit(1)\n"
    words = hired(project, coder(project, body))
    answer = work(project, *words)
    assert "the sandbox has no network; a person gives it one with --network" in answer.out
    assert "--network" not in work(project, *words, "--network", "--id", "other").out


@pytest.mark.req("R184")
def test_an_agent_that_speaks_the_protocol_does_a_ticket(project: Project) -> None:
    body = f"""
top, prompt, number = begin()
assert "Give the mean of heights" in prompt
os.symlink({str(project.folder)!r}, "way")
say("I look. ")
first = ask("fs/read_text_file", path=f"{{top}}/tides.py", line=2, limit=1)
seen = {{
    "line": first["content"],
    "edit": may("edit", f"{{top}}/tides.py"),
    "ci": may("edit", f"{{top}}/.github/workflows/ci.yml"),
    "outside": may("edit", "/etc/passwd"),
    "dots": may("edit", f"{{top}}/../x"),
    "unnamed": may("edit"),
    "run": may("execute"),
    "fetch": may("fetch"),
    "write": ask("fs/write_text_file", path=f"{{top}}/tides.py", content={FILES["tides.py"] + MEAN!r}),
    "new": ask("fs/write_text_file", path=f"{{top}}/deep/er/new.py", content="x = 1\\n"),
    "link": ask("fs/write_text_file", path=f"{{top}}/way/here.txt", content="x")["code"],
    "away": ask("fs/write_text_file", path={str(project.folder / "here.txt")!r}, content="x")["code"],
    "hook": ask("fs/write_text_file", path=f"{{top}}/.git/hooks/x", content="x")["code"],
    "absent": ask("fs/read_text_file", path=f"{{top}}/none.py")["code"],
    "passwd": ask("fs/read_text_file", path="/etc/passwd")["code"],
    "terminal": ask("terminal/create", command="sh")["code"],
}}
os.unlink("way")
pathlib.Path("seen.json").write_text(json.dumps(seen))
say("The mean is there.")
end(number)
"""
    found = worked(project, *hired(project, speaker(project, body)))
    assert (found["exit"], found["ready"]) == (0, True), found["err"]
    assert at(project, BRANCH, "tides.py") == FILES["tides.py"] + MEAN
    assert at(project, BRANCH, "deep/er/new.py") == "x = 1\n"
    assert json.loads(at(project, BRANCH, "seen.json")) == {
        "line": "    return 2 + hour % 12\n",
        "edit": "yes",
        "ci": "no",
        "outside": "no",
        "dots": "no",
        "unnamed": "no",
        "run": "yes",
        "fetch": "no",
        "write": {},
        "new": {},
        "link": -32000,
        "away": -32000,
        "hook": -32000,
        "absent": -32002,
        "passwd": -32000,
        "terminal": -32601,
    }
    assert not (project.folder / "here.txt").exists()
    told = story(project)
    assert "agent small 0.1" in told
    assert "The mean is there." in told


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("top, prompt, number = begin(version=2)", "speaks version 2 of the protocol"),
        ("sys.exit(1)", "ended before it answered"),
        ("top, prompt, number = begin()\nend(number, 'refusal')", "ended with refusal"),
        (
            "print('hello')\nprint('[1')\ntop, prompt, number = begin()\nend(number)",
            "changed nothing",
        ),
        ("print('x' * (1 << 25), flush=True)\nsys.stdin.read()", "is over the limit"),
        (
            "top, prompt, number = begin()\nwhile True: say('x' * (1 << 20))",
            "wrote more than 64 MB to stdout",
        ),
    ],
)
def test_what_is_wrong_with_an_agent_of_the_protocol_is_told(
    project: Project, body: str, words: str
) -> None:
    assert words in work(project, *hired(project, speaker(project, body))).out


def test_an_agent_that_never_stops_talking_is_ended_when_a_person_says_so(project: Project) -> None:
    body = f"open({str(project.log)!r}, 'w').write('begun')\nwhile True: print('y')\n"
    words = ("work", *hired(project, speaker(project, body)), "--quiet")
    running = project.begun_by(*words, step="begun")
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 130
    assert "paused" in project.ok("tickets", "list").out


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("nobody", "nothing says how 'nobody' is told what to do"),
        ("acp:", "'acp:' names no command"),
        ("no-such-agent {prompt}", "the agent 'no-such-agent' was not found"),
        ("acp:./no-such-agent", "the agent './no-such-agent' was not found"),
        ("./tides.py {prompt}", "tides.py' cannot be executed"),
        ("'", "cannot be told apart"),
    ],
)
def test_an_agent_that_nobody_can_start_is_refused(
    project: Project, agent: str, words: str
) -> None:
    repository(project, FILES)
    assert words in project.refused(2, "work", ticket(project, WANTED), "--agent", agent, *CHECK)


def test_an_agent_and_a_model_contradict_each_other(project: Project) -> None:
    repository(project, FILES)
    words = (ticket(project, WANTED), "--agent", "aider", "--model", "openai:x", *CHECK)
    assert "contradict each other" in project.refused(2, "work", *words)


def test_a_ticket_may_go_on_with_another_worker(project: Project) -> None:
    words = hired(project, coder(project, "sys.exit(1)\n"))
    assert work(project, *words).code == 1
    other = coder(project, adds(), "other.py")
    found = worked(project, "mean", "--agent", other)
    assert (found["exit"], found["ready"]) == (0, True)
