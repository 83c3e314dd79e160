"""Names that telemetry goes by: the GenAI conventions of OpenTelemetry, and our own beside them.

The conventions are in development and were renamed before, so each of their names stands here and nowhere
else. Ours begin with `holdfast.`.
"""

from __future__ import annotations

from typing import Final

# Operations, which also begin the names of spans.
INVOKE_WORKFLOW: Final = "invoke_workflow"
INVOKE_AGENT: Final = "invoke_agent"
PLAN: Final = "plan"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
STEP: Final = "step"  # an attempt that asks no model
APPROVAL: Final = "holdfast.approval"

# Keys of the conventions.
OPERATION: Final = "gen_ai.operation.name"
WORKFLOW: Final = "gen_ai.workflow.name"
AGENT: Final = "gen_ai.agent.name"
PROVIDER: Final = "gen_ai.provider.name"
MODEL: Final = "gen_ai.request.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
TOOL: Final = "gen_ai.tool.name"
ERROR: Final = "error.type"

# What is sent only if a person asks for content.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

# A verdict of a guard.
EVALUATION: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_WORDS: Final = "gen_ai.evaluation.explanation"

# Ours.
RUN: Final = "holdfast.run.id"
STATUS: Final = "holdfast.run.status"
RESUMED: Final = "holdfast.run.resumed"
PLAN_REF: Final = "holdfast.plan.ref"
PLAN_DIGEST: Final = "holdfast.plan.digest"
STEPS_REUSED: Final = "holdfast.steps.reused"
STEPS_SKIPPED: Final = "holdfast.steps.skipped"
STEP_ID: Final = "holdfast.step"
ATTEMPT: Final = "holdfast.attempt"
REUSE: Final = "holdfast.reuse"
REASON: Final = "holdfast.reason"
OUTCOME: Final = "holdfast.outcome"
CONFIG_REF: Final = "holdfast.config_ref"
ARTIFACT: Final = "holdfast.artifact"
VERIFIED: Final = "holdfast.verified"
COST: Final = "holdfast.cost_usd"
APPROVALS: Final = "holdfast.approvals"

# Providers by the names that the conventions know them by; others keep their own.
PROVIDERS: Final = {
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
}
FINISHES: Final = {"tools": "tool_call", "refused": "content_filter"}
