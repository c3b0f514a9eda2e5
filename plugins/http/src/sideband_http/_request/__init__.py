"""Requests: the plan, headers, cookies and body, and the search for secrets in them."""
