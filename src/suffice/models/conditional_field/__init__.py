"""What conditional random fields share, whatever the shape of their graphs."""
