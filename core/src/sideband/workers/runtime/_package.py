"""The part of sideband that a worker sees: the SDK for skills and the runtime that runs them."""
