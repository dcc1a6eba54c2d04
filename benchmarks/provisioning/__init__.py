"""Cost of `up` and `preview`, compared with a flat Pulumi program for the same objects and with another commit."""
