"""What a fit costs where its rows are many, or elsewhere: rounds, memory, and a regression beside other libraries."""
