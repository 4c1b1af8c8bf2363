"""Wishes about people, teams, tokens, secrets and limits; each module is one noun.

Every public function takes the acting `Actor`, checks it, and writes the change and its event in
one transaction.
"""
