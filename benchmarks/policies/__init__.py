"""Time of the policies for many resources."""
