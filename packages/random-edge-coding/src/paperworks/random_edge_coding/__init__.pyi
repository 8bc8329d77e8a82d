from .container import CorruptFile as CorruptFile
from .container import Header as Header
from .container import compress as compress
from .container import decompress as decompress
from .container import peek as peek
from .container import read_labels as read_labels
from .graph import Graph as Graph
from .io import read_edges as read_edges
from .io import write_edges as write_edges
from .urn import Information as Information
from .urn import best_bias as best_bias
from .urn import information as information
from .urn import sample as sample

__all__ = [
    "CorruptFile",
    "Graph",
    "Header",
    "Information",
    "best_bias",
    "compress",
    "decompress",
    "information",
    "peek",
    "read_edges",
    "read_labels",
    "sample",
    "write_edges",
]
