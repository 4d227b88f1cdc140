"""Front ends as torch modules: from waveforms to the input of a network. No networks or their weights."""
