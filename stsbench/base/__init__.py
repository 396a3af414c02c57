"""What all rooms use: user errors, atomic files, fingerprints, memory, words."""
