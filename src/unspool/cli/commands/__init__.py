"""What each command takes: options and help alone, so that ``--help`` answers at once. The work is imported when it is done."""
