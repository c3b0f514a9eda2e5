"""Real answers of servers, and the reaction to each."""

import json

import pytest
from sideband.hooks import Compact, GiveUp, Park, Retry

from .error_bodies import anthropic, google, llama, openai, openrouter, vllm

CASES = {
    # OpenAI
    "openai, no key": (401, openai("You didn't provide an API key."), {}, GiveUp, "auth"),
    "openai, wrong key": (401, openai("Incorrect API key provided: sk-…"), {}, GiveUp, "auth_permanent"),
    "openai, country": (403, openai("Country, region, or territory not supported"), {}, GiveUp, "auth"),
    "openai, minute": (
        429,
        openai("Rate limit reached on tokens per min (TPM): Limit 30000. Please try again in 20s.", kind="tokens"),
        {"x-ratelimit-reset-tokens": "6m0s"},
        Retry(20.0, "rate_limit"),
        "rate_limit",
    ),
    "openai, too large for a minute": (
        429,
        openai("Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 41000.", kind="tokens"),
        {},
        Compact,
        "context_overflow",
    ),
    "openai, no money": (
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.", kind="insufficient_quota"
        ),
        {"x-ratelimit-reset-requests": "1s", "x-should-retry": "false"},
        GiveUp,
        "billing",
    ),
    "openai, too long": (
        400,
        openai("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        {},
        Compact,
        "context_overflow",
    ),
    "openai, no model": (
        404,
        openai("The model `gpt-9` does not exist or you do not have access to it.", code="model_not_found"),
        {},
        GiveUp,
        "model_not_found",
    ),
    "openai, no path": (404, openai("Invalid URL (POST /chat/completions)"), {}, GiveUp, "format_error"),
    "openai, project without model": (
        403,
        openai("Project `p` does not have access to model `gpt-5`", code="model_not_found"),
        {},
        GiveUp,
        "model_not_found",
    ),
    "openai, orphan result": (
        400,
        openai("An assistant message with 'tool_calls' must be followed by tool messages."),
        {},
        GiveUp,
        "format_error",
    ),
    "openai, server": (500, openai("The server had an error", kind="server_error"), {}, Retry, "server_error"),
    "openai, overloaded": (503, openai("The engine is currently overloaded"), {}, Retry, "overloaded"),
    # Anthropic
    "anthropic, overloaded": (529, anthropic("overloaded_error", "Overloaded"), {}, Retry, "overloaded"),
    "anthropic, overloaded in a stream": (
        200,
        anthropic("overloaded_error", "Overloaded"),
        {},
        Retry,
        "overloaded",
    ),
    "anthropic, failed in a stream": (
        None,
        anthropic("api_error", "Internal server error"),
        {},
        Retry,
        "server_error",
    ),
    "anthropic, limit": (
        429,
        anthropic("rate_limit_error", "This request would exceed your account's rate limit."),
        {
            "retry-after": "13",
            "anthropic-ratelimit-tokens-remaining": "0",
            "anthropic-ratelimit-tokens-reset": "2025-11-22T13:00:00Z",
        },
        Retry(13.0, "rate_limit"),
        "rate_limit",
    ),
    "anthropic, limit of 5 hours": (
        429,
        anthropic("rate_limit_error", "This request would exceed your account's rate limit."),
        {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1763820000"},
        Park,
        "rate_limit",
    ),
    "anthropic, long context": (
        429,
        anthropic("rate_limit_error", "Extra usage is required for long context requests."),
        {},
        Compact,
        "context_overflow",
    ),
    "anthropic, no money": (
        400,
        anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        {},
        GiveUp,
        "billing",
    ),
    "anthropic, month": (
        400,
        anthropic(
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access on 2025-12-01 at 00:00 UTC.",
        ),
        {},
        Park,
        "rate_limit",
    ),
    "anthropic, too long": (
        400,
        anthropic("invalid_request_error", "prompt is too long: 212483 tokens > 200000 maximum"),
        {},
        Compact,
        "context_overflow",
    ),
    "anthropic, with the answer too long": (
        400,
        anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000"),
        {},
        Compact,
        "context_overflow",
    ),
    "anthropic, too large": (
        413,
        anthropic("request_too_large", "Request exceeds the maximum size"),
        {},
        Compact,
        "context_overflow",
    ),
    "anthropic, no model": (404, anthropic("not_found_error", "model: claude-9"), {}, GiveUp, "model_not_found"),
    "anthropic, wrong key": (
        401,
        anthropic("authentication_error", "invalid x-api-key"),
        {},
        GiveUp,
        "auth_permanent",
    ),
    "anthropic, right": (403, anthropic("permission_error", "Your key may not do this"), {}, GiveUp, "auth"),
    "anthropic, blocked": (
        400,
        anthropic("invalid_request_error", "Output blocked by content filtering policy"),
        {},
        GiveUp,
        "content_blocked",
    ),
    "anthropic, orphan call": (
        400,
        anthropic("invalid_request_error", "`tool_use` ids were found without `tool_result` blocks: toolu_1"),
        {},
        GiveUp,
        "format_error",
    ),
    # Google
    "google, minute": (
        429,
        google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check it.", retryDelay="34s"),
        {},
        Retry(34.0, "rate_limit"),
        "rate_limit",
    ),
    "google, wrong key": (
        400,
        google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        {},
        GiveUp,
        "auth_permanent",
    ),
    "google, no model": (
        404,
        google(404, "NOT_FOUND", "models/x is not found for API version v1beta"),
        {},
        GiveUp,
        "model_not_found",
    ),
    "google, too long": (
        400,
        google(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum allowed (1048575)."),
        {},
        Compact,
        "context_overflow",
    ),
    "google, overloaded": (503, google(503, "UNAVAILABLE", "The model is overloaded."), {}, Retry, "overloaded"),
    "google, place": (
        400,
        google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        {},
        GiveUp,
        "auth",
    ),
    # OpenRouter
    "openrouter, credits": (
        402,
        openrouter(402, "This request requires more credits, or fewer max_tokens. You can only afford 2666."),
        {},
        GiveUp,
        "billing",
    ),
    "openrouter, day": (
        429,
        openrouter(
            429,
            "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
            headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1763856000000"},
        ),
        {},
        Park(1_763_856_000.0, "rate_limit"),
        "rate_limit",
    ),
    "openrouter, in a stream": (
        200,
        openrouter(502, "Provider returned error", provider_name="x"),
        {},
        Retry,
        "server_error",
    ),
    "openrouter, limit in a stream": (200, openrouter(429, "Provider returned error"), {}, Retry, "rate_limit"),
    "openrouter, moderation": (
        403,
        openrouter(403, "x requires moderation. Your input was flagged", reasons=["violence"]),
        {},
        GiveUp,
        "content_blocked",
    ),
    "openrouter, no endpoint": (
        404,
        openrouter(404, "No endpoints found that support tool use."),
        {},
        GiveUp,
        "model_not_found",
    ),
    "openrouter, no such user": (401, openrouter(401, "User not found."), {}, GiveUp, "auth_permanent"),
    "openrouter, key's limit": (403, openrouter(403, "Key limit exceeded (total limit)."), {}, GiveUp, "billing"),
    # Azure
    "azure, filter": (
        400,
        openai("The response was filtered by Azure OpenAI's content management policy.", code="content_filter"),
        {},
        GiveUp,
        "content_blocked",
    ),
    "azure, limit": (
        429,
        openai("Requests have exceeded the limit of your tier. Please retry after 26 seconds.", code="429"),
        {},
        Retry(26.0, "rate_limit"),
        "rate_limit",
    ),
    "azure, deployment": (
        404,
        openai("The API deployment for this resource does not exist.", code="DeploymentNotFound"),
        {},
        GiveUp,
        "model_not_found",
    ),
    # Groq, Mistral, xAI, DeepSeek, AWS
    "groq, too large": (
        413,
        openai("Request too large on tokens per minute (TPM): Limit 6000", kind="tokens", code="rate_limit_exceeded"),
        {},
        Compact,
        "context_overflow",
    ),
    "groq, day": (
        429,
        openai("Rate limit reached on tokens per day (TPD). Please try again in 7m12s.", kind="tokens"),
        {},
        Park,
        "rate_limit",
    ),
    "mistral, tier": (
        429,
        json.dumps({"object": "error", "message": "Service tier capacity exceeded for this model.", "code": "3505"}),
        {},
        Retry,
        "rate_limit",
    ),
    "xai, month": (
        403,
        openai("Your team has either used all available credits or reached its monthly spending limit."),
        {},
        GiveUp,
        "billing",
    ),
    "deepseek, no money": (402, openai("Insufficient Balance", kind="unknown_error"), {}, GiveUp, "billing"),
    "deepseek, no model": (400, openai("Model Not Exist"), {}, GiveUp, "model_not_found"),
    "aws, throttled": (
        400,
        json.dumps({"__type": "ThrottlingException", "message": "Too many tokens, please wait before trying again."}),
        {},
        Retry,
        "rate_limit",
    ),
    "codex, week": (
        429,
        json.dumps({"error": {"type": "usage_limit_reached", "plan_type": "free", "resets_in_seconds": 529498}}),
        {},
        Park(1_763_812_800.0 + 529_498, "rate_limit"),
        "rate_limit",
    ),
    "a proxy, no money with status 401": (
        401,
        json.dumps({"message": "Insufficient balance. Manage your billing here", "type": "CreditsError"}),
        {},
        GiveUp,
        "billing",
    ),
    # Chinese services
    "zhipu, no money": (
        429,
        json.dumps({"error": {"code": "1113", "message": "您的账户已欠费"}}),
        {},
        GiveUp,
        "billing",
    ),
    "zhipu, blocked": (
        400,
        json.dumps({"error": {"code": "1301", "message": "系统检测到输入可能包含不安全或敏感内容"}}),
        {},
        GiveUp,
        "content_blocked",
    ),
    "moonshot, overloaded": (
        429,
        json.dumps({"error": {"message": "The engine is currently overloaded", "type": "engine_overloaded_error"}}),
        {},
        Retry,
        "rate_limit",
    ),
    "dashscope, too long": (
        400,
        openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"),
        {},
        Compact,
        "context_overflow",
    ),
    "a proxy, no channel": (
        503,
        openai("当前分组 default 下对于模型 x 无可用渠道", kind="new_api_error"),
        {},
        GiveUp,
        "model_not_found",
    ),
    "a proxy, wait": (429, openai("请求过于频繁 请在 20 秒后重试"), {}, Retry(20.0, "rate_limit"), "rate_limit"),
    # Local servers
    "llama.cpp, too long": (
        400,
        llama(400, "the request exceeds the available context size", "exceed_context_size_error", n_ctx=8192),
        {},
        Compact,
        "context_overflow",
    ),
    "llama.cpp, too long with status 500": (
        500,
        llama(500, "the request exceeds the available context size", "exceed_context_size_error", n_ctx=256),
        {},
        Compact,
        "context_overflow",
    ),
    "llama.cpp, too long with status 200": (
        200,
        llama(400, "the request exceeds the available context size", "exceed_context_size_error", n_ctx=8192),
        {},
        Compact,
        "context_overflow",
    ),
    "llama.cpp, loading": (503, llama(503, "Loading model", "unavailable_error"), {}, Retry, "overloaded"),
    "llama.cpp, template": (
        500,
        llama(500, "Conversation roles must alternate user/assistant", "server_error"),
        {},
        GiveUp,
        "format_error",
    ),
    "llama.cpp, no path": (404, llama(404, "File Not Found", "not_found_error"), {}, GiveUp, "format_error"),
    "vllm, too long": (
        400,
        vllm(400, "The decoder prompt is longer than max_model_len of 4096"),
        {},
        Compact,
        "context_overflow",
    ),
    "vllm, no model": (404, vllm(404, "The model `x` does not exist.", "NotFoundError"), {}, GiveUp, "model_not_found"),
    "vllm, dead": (500, vllm(500, "EngineDeadError", "InternalServerError"), {}, Retry, "server_error"),
    "ollama, no model": (
        404,
        json.dumps({"error": 'model "llama9" not found, try pulling it first'}),
        {},
        GiveUp,
        "model_not_found",
    ),
    "ollama, no tools": (400, json.dumps({"error": "gemma does not support tools"}), {}, GiveUp, "format_error"),
    "ollama, busy": (
        503,
        json.dumps({"error": "server busy, please try again. maximum pending requests exceeded"}),
        {},
        Retry,
        "overloaded",
    ),
    "ollama, memory": (
        500,
        json.dumps({"error": "model requires more system memory (9.2 GiB) than is available (6.1 GiB)"}),
        {},
        GiveUp,
        "model_not_found",
    ),
    "ollama, crash": (
        500,
        json.dumps({"error": "llama runner process has terminated: signal: killed"}),
        {},
        Retry,
        "server_error",
    ),
    "ollama, no path": (404, "404 page not found", {}, GiveUp, "format_error"),
    "lm studio, too long": (
        400,
        json.dumps(
            {
                "error": "Trying to keep the first 111490 tokens when context the overflows. However, the model is "
                "loaded with context length of only 32768 tokens"
            }
        ),
        {},
        Compact,
        "context_overflow",
    ),
    "lm studio, nothing loaded": (404, openai("No models loaded. Please load a model"), {}, GiveUp, "model_not_found"),
    "lm studio, no path": (
        200,
        json.dumps({"error": "Unexpected endpoint or method. (POST /api/v9)"}),
        {},
        GiveUp,
        "format_error",
    ),
    # Proxies
    "nginx, too large": (
        413,
        "<html><head><title>413 Request Entity Too Large</title></head></html>",
        {},
        Compact,
        "context_overflow",
    ),
    "nginx, no server": (502, "<html><title>502 Bad Gateway</title></html>", {}, Retry, "server_error"),
    "nginx, slow server": (504, "<html><title>504 Gateway Time-out</title></html>", {}, Retry, "timeout"),
    "cloudflare, forbidden": (403, "<html><title>Just a moment...</title></html>", {}, GiveUp, "auth"),
    "cloudflare, slow": (524, "error code: 524", {}, Retry, "timeout"),
    "a page instead of a model": (200, "<html><title>Welcome to the hotel</title></html>", {}, GiveUp, "format_error"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_answer_has_the_expected_reaction(ask, case):
    status, body, headers, follows, kind = case
    answer = ask(status, body, headers=headers)
    assert answer.kind == kind
    assert isinstance(answer, follows if isinstance(follows, type) else type(follows))
    if isinstance(follows, Retry):
        assert answer.delay == follows.delay
    if isinstance(follows, Park):
        assert answer.until == follows.until
