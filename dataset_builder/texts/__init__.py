"""What is said of sound, from events alone: captions, whether they are true, and questions; no sound is made here."""
