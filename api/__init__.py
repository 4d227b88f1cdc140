"""The public names of audio-compositionality."""
