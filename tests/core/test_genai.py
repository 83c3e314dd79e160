"""The names that telemetry goes by: whoever looks for them at a collector finds them tomorrow too."""

from holdfast.core import genai

PUBLISHED = """
    invoke_workflow
    invoke_agent
    plan
    chat
    execute_tool
    step
    gen_ai.operation.name
    gen_ai.workflow.name
    gen_ai.agent.name
    gen_ai.provider.name
    gen_ai.request.model
    gen_ai.response.id
    gen_ai.response.finish_reasons
    gen_ai.usage.input_tokens
    gen_ai.usage.output_tokens
    gen_ai.usage.cache_read.input_tokens
    gen_ai.tool.name
    error.type
    gen_ai.input.messages
    gen_ai.output.messages
    gen_ai.tool.call.arguments
    gen_ai.tool.call.result
    gen_ai.evaluation.result
    gen_ai.evaluation.name
    gen_ai.evaluation.score.label
    gen_ai.evaluation.score.value
    gen_ai.evaluation.explanation
"""  # as the GenAI conventions of OpenTelemetry have them
OURS = """
    holdfast.approval
    holdfast.run.id
    holdfast.run.status
    holdfast.run.resumed
    holdfast.plan.ref
    holdfast.plan.digest
    holdfast.steps.reused
    holdfast.steps.skipped
    holdfast.step
    holdfast.attempt
    holdfast.reuse
    holdfast.reason
    holdfast.outcome
    holdfast.config_ref
    holdfast.artifact
    holdfast.verified
    holdfast.cost_usd
    holdfast.approvals
"""


def test_each_name_is_as_the_conventions_or_our_pages_have_it() -> None:
    told = {name: word for name, word in vars(genai).items() if name.isupper()}
    words = [word for word in told.values() if isinstance(word, str)]
    assert len(words) == len(set(words)), "one word for two things"
    assert set(words) == {*PUBLISHED.split(), *OURS.split()}


def test_providers_and_ends_have_the_names_of_the_conventions() -> None:
    assert genai.PROVIDERS == {
        "bedrock": "aws.bedrock",
        "google": "gcp.gemini",
        "mistral": "mistral_ai",
    }
    assert genai.FINISHES == {"tools": "tool_call", "refused": "content_filter"}
