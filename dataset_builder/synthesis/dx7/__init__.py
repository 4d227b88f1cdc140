"""A Yamaha DX7 in software: voices, banks of voices, and the sound of a note."""

from .bank import load_bank
from .engine import render
from .voice import Operator, Voice

__all__ = ["Operator", "Voice", "load_bank", "render"]
