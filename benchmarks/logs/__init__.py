"""What reading Ray's logs costs."""
