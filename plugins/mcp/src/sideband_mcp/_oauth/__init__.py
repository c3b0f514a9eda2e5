"""Authorization of servers with OAuth: logins by a person in a browser, and the tokens of requests."""
