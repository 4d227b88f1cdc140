"""What is said of sound: expressions of events, when one is true of a clip, and captions; nothing here makes sound."""
