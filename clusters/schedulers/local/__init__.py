"""Jobs as detached sessions on this machine.

One folder a job holds all there is to know; no process of the portal needs to live for it.
"""
