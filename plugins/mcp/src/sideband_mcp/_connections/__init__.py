"""The connections to servers, and their calls. Nothing is imported here: the SDK is slow to import."""
