"""Texts about sound, made from events alone: captions, tests of their truth, and questions; no sound is made here."""
