"""A weighted graph split into parts of hard capacity with little weight between them."""
