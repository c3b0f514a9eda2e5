"""The part of sideband in a worker: the SDK for skills and the runtime."""
