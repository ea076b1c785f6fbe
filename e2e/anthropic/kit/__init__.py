"""What the tests share: a server process, plain HTTP, and short words over the SDK."""
