"""From a request to its response: the check of its addresses, redirects, retries, sessions and downloads."""
