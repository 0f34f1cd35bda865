"""Graph conditional random fields: `model` holds the public class, `example` what it learns from."""
