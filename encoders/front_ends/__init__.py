"""Front ends as torch modules: from waveforms to what a network takes. No network and no weights of one."""
