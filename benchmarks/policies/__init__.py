"""How long the policies take over many resources."""
