"""One adaptor a library. A function takes the data, prepares, and returns the call that is timed."""
