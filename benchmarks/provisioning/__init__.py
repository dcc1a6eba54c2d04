"""What `up` and `preview` cost, against a flat Pulumi program with the same objects and against another commit."""
