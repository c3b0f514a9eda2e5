"""The HTTP client that model providers share: keys, server-sent events, strict JSON and errors."""

from ._access import ServiceAccess
from ._address import ServiceAddress
from ._attached import data_url, file_text
from ._connections import ServiceConnections, ServiceTransportFactory
from ._errors import InputUnsupported, broken, not_a_model, refused, refused_inside
from ._event_streams import EventStreamCut, EventStreamError, ServerSentEvent, read_events
from ._headers import checked_headers
from ._keys import find_access
from ._replies import ServiceReply
from ._requests import ServiceRequest
from ._service import KeyForm, ModelService
from ._strict_json import compact, encoded, json_pieces, parse_json, parse_object, whole_characters
from ._text_pieces import TextPieces
from ._token_counts import token_count
from ._tool_fragments import tool_fragments
from ._version import __version__

__all__ = [
    "EventStreamCut",
    "EventStreamError",
    "InputUnsupported",
    "KeyForm",
    "ModelService",
    "ServerSentEvent",
    "ServiceAccess",
    "ServiceAddress",
    "ServiceConnections",
    "ServiceReply",
    "ServiceRequest",
    "ServiceTransportFactory",
    "TextPieces",
    "__version__",
    "broken",
    "checked_headers",
    "compact",
    "data_url",
    "encoded",
    "file_text",
    "find_access",
    "json_pieces",
    "not_a_model",
    "parse_json",
    "parse_object",
    "read_events",
    "refused",
    "refused_inside",
    "token_count",
    "tool_fragments",
    "whole_characters",
]
