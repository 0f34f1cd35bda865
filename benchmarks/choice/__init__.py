"""Whether what the library chooses by itself is right: a zoo of random fits, and all ways to do each of them."""
