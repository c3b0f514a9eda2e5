"""From a request to its response: address checks, redirects, retries, sessions and downloads."""
