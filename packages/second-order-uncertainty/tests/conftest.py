"""Warnings of third-party code that are not ours to mend."""


def pytest_configure(config):
    # POT's docstrings, when its files are compiled for the first time.
    for category in ("DeprecationWarning", "SyntaxWarning"):
        config.addinivalue_line("filterwarnings", f"ignore:invalid escape sequence:{category}")
