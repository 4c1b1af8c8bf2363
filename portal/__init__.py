"""The project: its rooms core, teams and notices, and the roof of asgi, urls and views."""
