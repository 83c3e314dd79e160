"""Models of Amazon Bedrock. Region and keys come from where its own library looks for them.

A key of the person's own, if there is one, is a bearer token. The library is kept from asking again by itself
and from following the proxies of the environment, and reads no more than anybody could want, as for every
other vendor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

import boto3
import httpx2
from botocore import UNSIGNED
from botocore import exceptions as faults
from botocore.config import Config
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.providers.bedrock import BedrockModelProfile, BedrockProvider

from holdfast.errors import CallError
from holdfast.generators.transport import LEAVES, Bound
from holdfast.generators.vendors.schemas import CLOSES_OBJECTS

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.httpsession import URLLib3Session
    from urllib3 import HTTPResponse

WAITS_IN_THREADS = True
FAULTS: dict[type[Exception], str] = {
    faults.NoCredentialsError: "credentials_missing",
    faults.PartialCredentialsError: "credentials_missing",
    faults.CredentialRetrievalError: "credentials_missing",
    faults.NoAuthTokenError: "credentials_missing",
    faults.TokenRetrievalError: "credentials_missing",
    faults.SSOError: "credentials_missing",
    faults.BotoCoreError: "call_refused",
}
_PROFILE = cast(
    "BedrockModelProfile",
    {
        CLOSES_OBJECTS: True,
        "anthropic_disallows_sampling_settings": False,  # else they are dropped without a word
        "bedrock_disallows_sampling_settings": False,
    },
)


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> BedrockConverseModel:
    """A model by its name."""
    del http
    session = boto3.Session()
    region = session.region_name or os.environ.get("AWS_REGION")
    if not region:
        raise CallError(
            "nobody said which region of Amazon Bedrock is to be asked",
            reason="call_refused",
            hint="set AWS_REGION",
        )
    client = session.client(
        "bedrock-runtime",
        region_name=region,
        endpoint_url=base_url or None,
        config=Config(
            read_timeout=300,
            connect_timeout=20,
            retries={"total_max_attempts": 1},
            proxies={},
            signature_version=UNSIGNED if key else None,
        ),
    )
    endpoint = client._endpoint  # noqa: SLF001 - whoever sends is known nowhere else
    endpoint.http_session = _Bounded(endpoint.http_session)
    if key:
        client.meta.events.register("before-call.bedrock-runtime", partial(_with_key, key))
    provider = BedrockProvider(bedrock_client=client)
    return BedrockConverseModel(name, provider=provider, profile=_PROFILE)


class _Bounded:
    """Whoever sends for the library, with a bound on what comes."""

    def __init__(self, inner: URLLib3Session) -> None:
        self._inner = inner

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        LEAVES.get()()
        response = self._inner.send(request)
        response.raw = _Counted(response.raw, Bound(response.status_code))
        return response

    def close(self) -> None:
        self._inner.close()


class _Counted:
    """What comes, unpacked and counted; the rest of it is as the library knows it."""

    def __init__(self, raw: HTTPResponse, bound: Bound) -> None:
        self._raw = raw
        self._bound = bound

    def stream(self) -> Iterator[bytes]:
        return map(self._bound.take, self._raw.stream(decode_content=True))

    def __getattr__(self, name: str) -> object:
        return getattr(self._raw, name)


def _with_key(key: str, params: dict[str, dict[str, str]], **_: object) -> None:
    params["headers"]["Authorization"] = f"Bearer {key}"
