"""The base image of boxes, made of this machine's own programs."""
