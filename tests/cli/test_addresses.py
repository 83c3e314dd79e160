"""Where keys are sent: to the address that the person's configuration names, and nowhere else."""

import pytest

from holdfast.testing.server import Fail, ModelServer, Say
from tests.cli.models import configure, step
from tests.cli.project import Project

KEY = "Kanarie-of-a-provider"


@pytest.mark.req("I13")
def test_neither_a_redirect_nor_a_proxy_nor_a_project_gets_the_key(project: Project) -> None:
    project.plan({"a": step()})
    with ModelServer("mine now") as thief:
        away = Fail(307, headers={"location": f"{thief.url}/chat/completions"})
        with ModelServer([away, Say("never")]) as server:
            configure(project, server.url, provider='api_key_env = "FAKE_CREDS"')
            project.write(".env", f"OPENAI_BASE_URL={thief.url}\nHTTP_PROXY={thief.url}\n")
            (project.home / ".netrc").write_text("machine 127.0.0.1 login me password netrc-word\n")
            proxies = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY")
            env = dict.fromkeys(proxies, thief.url.removesuffix("/v1"))
            answer = project.call("run", "--yes", "--json", env={**env, "FAKE_CREDS": KEY})
            heard = [asked.headers.get("authorization", "") for asked in server.requests]
    assert thief.requests == []
    assert heard == [f"Bearer {KEY}"]
    assert answer.json["steps"]["a"]["reason"]["code"] == "call_refused", answer
    assert KEY not in answer.out + answer.err


@pytest.mark.req("I13")
def test_an_address_with_a_key_in_it_is_refused_and_not_repeated(project: Project) -> None:
    project.plan({"a": {"prompt": "say", "model": "openai:m"}})
    env = {"OPENAI_BASE_URL": f"http://me:{KEY}@127.0.0.1:9/v1", "OPENAI_API_KEY": "something-long"}
    said = project.refused(2, "run", "--yes", env=env)
    assert "OPENAI_BASE_URL holds a name or a key" in said
    assert KEY not in said


@pytest.mark.req("I13")
@pytest.mark.parametrize("file", ["holdfast.toml", "pyproject.toml"])
def test_a_project_names_no_provider(project: Project, file: str) -> None:
    table = "providers" if file == "holdfast.toml" else "tool.holdfast.providers"
    project.write(file, f'[{table}.openai]\nbase_url = "http://127.0.0.1:9"\n')
    project.plan({"a": {"prompt": "say", "model": "openai:m"}})
    said = project.refused(2, "run", "--yes", env={"OPENAI_API_KEY": KEY})
    assert "belongs to a person, not to a project" in said
    assert "config.toml of your own configuration" in said
