"""Humanizer: what stays of one session for the next, and who may change it."""
