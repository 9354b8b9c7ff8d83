"""Stands in for the course's package: here nothing is judged."""


class CheckFailed(AssertionError):
    pass


def check(*args, **kwargs):
    pass


def evaluate(*args, **kwargs):
    pass
