"""Phrases of error messages in lower case: codes and parts of sentences of services, proxies and local servers.

No phrase contains another one of its class: the longer one would never be needed.
"""

from __future__ import annotations

CONTENT_BLOCKED = (
    "content_filter",  # Azure, and others after it
    "content filter",
    "contentfilter",
    "content_policy_violation",
    "content management policy",
    "content exists risk",  # DeepSeek
    "responsibleaipolicyviolation",
    "our usage polic",
    "our safety system",
    "blocked due to safety",
    "prohibited_content",
    "moderation_blocked",
    "requires moderation",  # OpenRouter
    "input was flagged",
    "prompt was flagged",
    "flagged by moderation",
    "data_inspection_failed",  # DashScope
    "datainspectionfailed",
    "inappropriate content",
    "sensitive_words_detected",  # one-api and its forks
    "不安全或敏感内容",
    "敏感词",
    "内容安全",
)

TOOL_USE_FAILED = (
    "tool_use_failed",  # Groq
    "malformed_function_call",  # Google
)

BILLING = (
    "insufficient_quota",
    "exceeded your current quota",
    "exceeded_current_quota_error",  # Moonshot
    "billing_hard_limit_reached",
    "billing hard limit",
    "billing_not_active",
    "billing_error",
    "check your billing",
    "credit balance is too low",  # Anthropic
    "specified api usage limits",
    "insufficient credits",
    "insufficient balance",  # DeepSeek, Moonshot
    "insufficient_balance",
    "insufficient funds",
    "insufficient_user_quota",  # one-api
    "user quota is not enough",
    "balance is insufficient",
    "requires more credits",  # OpenRouter
    "can only afford",
    "key limit exceeded",
    "creditserror",
    "out of credits",
    "used all available credits",  # xAI
    "monthly spending limit",
    "payment required",
    "arrearage",  # DashScope
    "余额不足",
    "额度不足",
    "欠费",
    "请充值",
)

RATE_LIMIT = (
    "rate limit",
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "too many requests",
    "too_many_requests",
    "toomanyrequests",
    "requests per min",
    "tokens per min",
    "requests per day",
    "tokens per day",
    "free-models-per-day",  # OpenRouter
    "resource_exhausted",  # Google
    "resource has been exhausted",
    "resource exhausted",
    "quota exceeded",
    "quota_exceeded",
    "throttl",  # AWS, DashScope
    "too many tokens, please wait",
    "usage limit",
    "usage_limit",
    "hit your limit",
    "concurrency limit",
    "concurrent requests",
    "limit_requests",
    "limit_burst_rate",
    "请求过于频繁",
    "请求频率",
    "速率限制",
    "并发",
    "限流",
)

OVERLOADED = (
    "overloaded",
    "over capacity",
    "at capacity",
    "capacity exceeded",  # Mistral
    "insufficient capacity",
    "server is busy",
    "server busy",  # Ollama
    "server_busy",
    "maximum pending requests",
    "queue is full",
    "temporarily unavailable",
    "service unavailable",
    "service_unavailable",
    "serviceunavailable",
    "unavailable_error",
    '"unavailable"',  # Google
    "high demand",
    "heavy load",
    "loading model",  # llama.cpp
    "model is loading",
    "currently loading",  # Hugging Face
    "no healthy upstream",
    "服务繁忙",
    "服务器繁忙",
    "过载",
    "负载较高",
)

CONTEXT_OVERFLOW = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context limit",  # Anthropic
    "context size",  # llama.cpp
    "exceed_context_size_error",
    "n_ctx",
    "max_model_len",  # vLLM
    "max_seq_len",
    "prompt is too long",
    "prompt too long",
    "input is too long",  # AWS
    "input too long",
    "too many tokens:",  # Cohere; without the colon it is a limit of AWS
    "too many input tokens",
    "input token count",  # Google
    "maximum number of tokens",
    "maximum prompt length",  # xAI
    "model token limit",  # Moonshot
    "input length",  # DashScope, Ollama
    "reduce the length",
    "string_above_max_length",
    "request too large",
    "request_too_large",
    "entity too large",
    "payload too large",
    "long context requests",
    "上下文长度",
    "最大长度",
    "输入过长",
)

NEVER_FITS = ("request too large", "tokens must be reduced", "long context requests")
"""Phrases that, with status 429, mean that the request exceeds the limit of a whole minute."""

MODEL_NOT_FOUND = (
    "model_not_found",
    "model not found",
    "modelnotfound",
    "model not exist",  # DeepSeek
    "` does not exist",
    "or you do not have access to it",
    "does not have access to model",
    "have access to the model",
    "unknown model",
    "unknown_model",
    "invalid model",
    "invalid_model",
    "no such model",
    "not a valid model",  # OpenRouter
    "no endpoints found",
    "unsupported model",
    "unsupported_model",
    "model is not supported",
    "deploymentnotfound",  # Azure
    "deployment for this resource does not exist",
    "try pulling it first",  # Ollama
    "requires more system memory",
    "no models loaded",  # LM Studio
    "failed to load model",
    "has been decommissioned",  # Groq
    "model_decommissioned",
    "is not found for api version",  # Google
    '"model: ',  # Anthropic
    "模型不存在",
    "无可用渠道",
)

AUTH_PERMANENT = (
    "invalid api key",
    "invalid_api_key",
    "invalid x-api-key",
    "incorrect api key",
    "api key not valid",  # Google
    "api_key_invalid",
    "api key is invalid",
    "invalidapikey",  # DashScope
    "api key expired",
    "api key has expired",
    "key has been revoked",
    "api key is disabled",
    "api key not found",
    "invalid token",
    "account has been deactivated",
    "account_deactivated",
    "account has been suspended",
    "organization has been disabled",  # Anthropic
    "access_terminated",
    "user not found",  # OpenRouter
    "无效的令牌",
    "令牌已过期",
    "密钥无效",
)

AUTH = (
    "unauthorized",
    "unauthenticated",
    "authentication_error",
    "authentication failed",
    "authentication fails",  # DeepSeek
    "authentication required",
    "authenticationerror",
    "no auth credentials",  # OpenRouter
    "no api key",
    "provide an api key",
    "missing api key",
    "missing bearer",
    "permission_error",
    "permission_denied",
    "permission denied",
    "permissiondenied",
    "access denied",
    "access_denied",
    "accessdenied",
    "forbidden",
    "not authorized",
    "insufficient permissions",
    "missing scopes",
    "country_region_territory",
    "location is not supported",
    "token has expired",
    "未授权",
    "身份验证",
    "鉴权失败",
    "没有权限",
)

TIMEOUT = (
    "timed out",
    "timedout",
    "timeout",
    "time-out",
    "time out",
    "deadline exceeded",
    "deadline_exceeded",
    "took too long",
    "takes too long",
    "too long to respond",
    "not respond in time",
    "not respond within",
    "no response within",
    "time limit exceeded",
    "超时",
)

FORMAT_ERROR = (
    "invalid_request_error",
    "invalid request",
    "invalidrequest",
    "bad request",
    "badrequest",
    "bad_request",
    "validation error",
    "validationexception",  # AWS
    "invalid_argument",  # Google
    "invalid argument",
    "invalid parameter",
    "invalid_parameter",
    "invalidparameter",
    "unsupported parameter",
    "unsupported_parameter",
    "unsupported_value",
    "unrecognized request argument",
    "unknown parameter",
    "extra inputs are not permitted",
    "field required",
    "missing required",
    "invalid schema",
    "invalid_function_parameters",
    "ids were found without",  # Anthropic: a tool call without its result
    "must be followed by tool messages",
    "roles must alternate",  # templates of local models
    "does not support tools",  # Ollama
    "cannot unmarshal",
    "parse the json body",
    "jinja",  # llama.cpp, LM Studio
    "unexpected endpoint or method",
    "invalid url",
    "参数错误",
    "参数非法",
    "参数无效",
    "格式错误",
)

SERVER_ERROR = (
    "answer is empty",  # sideband's own message
    "server_error",
    "internal server error",
    "internalservererror",
    "internal_error",
    "internal error",
    '"api_error"',  # Anthropic; proxies end the types of all their errors with it
    "server had an error",
    "error occurred while processing",
    "something went wrong",
    "bad gateway",
    "bad_gateway",
    "upstream error",
    "upstream_error",
    "upstream connect error",
    "provider returned error",  # OpenRouter
    "connection reset",
    "connection error",
    "cuda error",
    "out of memory",
    "runner process has terminated",  # Ollama
    "runner has unexpectedly stopped",
    "model has crashed",  # LM Studio
    "enginedeaderror",  # vLLM
    "内部错误",
    "系统错误",
)

REFUSED = (
    "connection refused",
    "econnrefused",
    "connectionrefused",
    "actively refused",
    "127.0.0.1",
    "localhost",
    "[::1]",
)
"""Phrases that mean that no server listens, or that it runs on this machine, where waiting rarely helps."""

CERTIFICATE = ("certificate", "secure connection")
"""Phrases that mean that the server's certificate is not trusted, which a retry does not change."""
