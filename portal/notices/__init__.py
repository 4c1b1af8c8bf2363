"""Alert levels, routes and deliveries: mail, chat and webhooks.

May import portal.teams and portal.core. Rooms above call services.set_level in their own
transaction; portal.notices.reconcile alone writes the status columns of Delivery.
"""
