"""What stands in for Pulumi's own plugins where they cannot be downloaded, and the choice between the two."""
