"""Networks that transformers does not have, as torch modules that families import lazily. No listing, no loading."""
