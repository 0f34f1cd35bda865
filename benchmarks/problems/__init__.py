"""One module a problem: its data, its contenders, and what makes an answer good."""
