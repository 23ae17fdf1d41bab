"""talkfold: agent conversations as append-only logs that fold into state."""
