"""What is sent: the plan of a request, its headers, cookies and body, and the search for secrets in them."""
