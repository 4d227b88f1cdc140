"""Texts about sound, made from events alone: captions, their truth, and questions; no sound is made here."""
