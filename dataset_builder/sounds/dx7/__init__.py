"""A Yamaha DX7 in software: voices, banks of voices, and the sound of a note; nothing that knows of scenes."""
