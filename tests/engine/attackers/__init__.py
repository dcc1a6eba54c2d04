"""Generated attacks: what each person and account may write, with values in any field that the API server knows."""
