"""The store protocol, the parts of a store that plugins get, and reservations.

A plugin that stores data implements ``Store``; other plugins use ``ctx.store``.
"""

from ._part import StorePart
from ._protocol import Document, Record, SharedStore, Store, StoreSpec, Transaction
from ._reservations import Reservation, Reservations

__all__ = [
    "Document",
    "Record",
    "Reservation",
    "Reservations",
    "SharedStore",
    "Store",
    "StorePart",
    "StoreSpec",
    "Transaction",
]
