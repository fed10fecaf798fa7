"""Permissions: principals, access control lists, and the requirement of each request."""
