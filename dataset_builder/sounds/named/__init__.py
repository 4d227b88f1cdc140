"""Data sets of others that have a name here: one YAML file each, with what is read of them; no sound lies here."""
