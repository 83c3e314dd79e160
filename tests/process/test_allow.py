"""Rules on commands: what cannot be understood is refused, and the sandbox holds what is not."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProcessError
from holdfast.process.allow import Rule, allowed, parse_line
from holdfast.process.confine import Sandbox
from holdfast.process.front import call

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
WITH_RG = {"PATH": f"{ENV['PATH']}:{os.path.dirname(sys.executable)}"}  # it comes with a package
RULES = tuple(
    Rule.of(text) for text in ("ls", "cat", "git status", "find", "sed", "awk", "grep", "echo")
)
HOSTILE = [
    "ls;touch MARK",
    "ls\ntouch MARK",
    "ls & touch MARK",
    "ls | tee MARK",
    "echo $(touch MARK)",
    "echo `touch MARK`",
    'echo "$(touch MARK)"',
    "x='$(touch MARK)';echo ${x@P}",
    "ls${IFS};${IFS}touch${IFS}MARK",
    "find . -exec touch MARK \\;",
    "find . -fprint MARK",
    "sed 1e'touch MARK' f",
    "sed -n '1w MARK' f",
    "sed --in-place s/a/b/ f",
    """awk 'BEGIN{system("touch MARK")}'""",
    """awk '{print > "MARK"}' f""",
    "awk -f prog f",
    "echo x|xargs -I{} touch MARK",
    "env -S 'touch MARK'",
    "tar cf /dev/null f --checkpoint=1 --checkpoint-action=exec='touch MARK'",
    "git -c core.fsmonitor='touch MARK;false' status",
    "git --exec-path=. status",
    ";".join(["true"] * 60) + ";touch MARK",
    "./ls",
    "ls > MARK",
    "echo x > MARK",
    "echo\rtouch MARK",
    "ls\u2028touch MARK",
    "FOO=bar ls",
    "ls 'unended",
    "touch MARK",
    "",
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "f").write_text("a\nb\n")
    planted = tmp_path / "ls"
    planted.write_text("#!/bin/sh\ntouch MARK\n")
    planted.chmod(0o755)
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.req("D38", "R142")
@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_lines_start_nothing(workspace: Path, line: str) -> None:
    hostile_path = f".:{workspace}:{ENV['PATH']}"
    with pytest.raises(ProcessError):
        call(line, cwd=str(workspace), env={"PATH": hostile_path}, allow=RULES, confine="never")
    assert not (workspace / "MARK").exists()


WIDE = tuple(
    Rule.of(text)
    for text in ("git", "git grep", "git archive", "git ls-remote", "find", "rg", "sort", "tar")
)
ODD = [
    "git grep -O./ls a",
    "git grep -nO./ls a",
    "git grep --open-files-in-pager=./ls a",
    "git grep --ope=./ls a",
    "git ls-remote --u='touch MARK;' .",
    "git ls-remote --upload-pack 'touch MARK;' .",
    "git archive -o MARK HEAD",
    "git archive -oMARK HEAD",
    "git archive --remote=. HEAD",
    "git log -1 --outp=MARK",
    "git diff --o=MARK HEAD",
    "git diff --no-index --output MARK f ls",
    "git show --ext-diff",
    "git config alias.x '!touch MARK'",
    "git x",
    "git difftool -y -x 'touch MARK'",
    "git bisect run touch MARK",
    "git -c core.pager='touch MARK' -p log",
    "tar -cf MARK f",
    "tar cf MARK f",
    "tar -cf /dev/null -vI./ls f",
    "tar cIf ./ls /dev/null f",
    "tar --use=./ls -cf /dev/null f",
    "sort -o MARK f",
    "sort -no MARK f",
    "sort -k -- -oMARK f",
    "sort --outp=MARK f",
    "sort --compress-program=./ls f",
    "rg --pre ./ls a",
    "rg --pre=./ls a",
    "rg -z a",
    "rg --hostname-bin ./ls a",
    "find . -fprint0 MARK",
    "find . -name f -okdir ./ls",
]


@pytest.mark.req("D38", "R142")
@pytest.mark.parametrize("line", ODD)
def test_options_that_nobody_knows_to_be_harmless_must_stand_in_the_rule(
    workspace: Path, line: str
) -> None:
    with pytest.raises(ProcessError, match="is not allowed"):
        call(line, cwd=str(workspace), env=WITH_RG, allow=WIDE, confine="never")
    assert not (workspace / "MARK").exists()
    words = parse_line(line)
    assert allowed(words, (Rule.of(line),), str(workspace), WITH_RG)[1:] == words[1:]


@pytest.mark.req("R142")
@pytest.mark.parametrize(
    "line",
    [
        "git log --oneline -3 -- f",
        "git diff -U5 --stat HEAD",
        "git grep -n -e a",
        "git status --short",
        "sort -k2,2 -rn f",
        "sort --reverse f",
        "rg -n -g '*.py' -A2 a",
        "rg --files",
        "find . -type f -mtime -7 -not -name '*.pyc'",
    ],
)
def test_options_that_only_look_pass(workspace: Path, line: str) -> None:
    words = parse_line(line)
    assert allowed(words, WIDE, str(workspace), WITH_RG)[1:] == words[1:]


@pytest.mark.req("D38", "R142")
@pytest.mark.parametrize("line", HOSTILE)
def test_what_a_shell_would_do_with_them_stays_in_the_sandbox(
    workspace: Path,
    tmp_path_factory: pytest.TempPathFactory,
    line: str,
    require_part: Callable[[str], str],
) -> None:
    """The boundary: the same lines in a real shell, in a sandbox that may write nothing."""
    require_part("bubblewrap")
    place = tmp_path_factory.mktemp("outside") / "MARK"
    done = call(
        ["bash", "-c", line.replace("MARK", str(place))],
        cwd=str(workspace),
        env=ENV,
        sandbox=Sandbox(readable=(str(workspace),)),
        timeout=60,
    )
    assert done.sandboxed
    assert not place.exists()


@pytest.mark.req("R142")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo 'a b' \"c d\" e\\ f", b"a b c d e f\n"),
        ("cat f", b"a\nb\n"),
        ("sed -n 2p f", b"b\n"),
        ("sed 's/a/x/g' f", b"x\nb\n"),
        ("awk '{print $1}' f", b"a\nb\n"),
        ("find . -name f", b"./f\n"),
        ("grep -c . f", b"2\n"),
        ("echo '$(touch MARK)' ';' '|'", b"$(touch MARK) ; |\n"),
    ],
)
def test_plain_lines_run(workspace: Path, line: str, said: bytes) -> None:
    done = call(line, cwd=str(workspace), env=ENV, allow=RULES, confine="never")
    assert done.stdout == said
    assert done.success


def test_a_rule_s_words_must_follow(workspace: Path) -> None:
    assert allowed(("git", "status", "-s"), RULES, str(workspace), ENV)[1:] == ("status", "-s")
    with pytest.raises(ProcessError, match="not allowed"):
        allowed(("git", "push"), RULES, str(workspace), ENV)


def test_a_planted_program_is_not_the_one_that_is_meant(workspace: Path) -> None:
    with pytest.raises(ProcessError, match="workspace"):
        allowed(("ls",), RULES, str(workspace), {"PATH": f"{workspace}:/usr/bin:/bin"})
    assert os.path.dirname(allowed(("ls",), RULES, str(workspace), ENV)[0]) in ENV["PATH"].split(
        ":"
    )


@given(st.text(max_size=60))
def test_a_line_is_split_as_a_shell_would_or_refused(line: str) -> None:
    try:
        words = parse_line(line)
    except ProcessError:
        return
    said = subprocess.run(
        ["/bin/sh", "-c", f"set -f; printf '%s\\0' {line}"],
        capture_output=True,
        check=False,
        env={"PATH": "/nowhere"},
    )
    assert said.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)
