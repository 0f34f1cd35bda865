"""What hidden states emit: one file for each kind of distribution."""
