"""A Postgres server for one project, from a wheel's binaries; nothing for the user to set up."""
