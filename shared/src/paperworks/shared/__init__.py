"""What paperworks packages share: claims, reports, the command line and small maths.

Each module is one idea and is imported by its own name, for example
``from paperworks.shared.claims import Claims``; nothing is imported here, so that the command line
starts fast.
"""
