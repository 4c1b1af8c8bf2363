"""The project: core, teams and notices are rooms below; asgi, urls, celery and views are the roof."""
