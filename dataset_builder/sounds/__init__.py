"""All sounds, as entries of one protocol: tones, a folder, a data set, strong labels, published data."""
