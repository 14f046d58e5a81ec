"""Boxes made of Linux namespaces, for machines without a Docker engine."""
