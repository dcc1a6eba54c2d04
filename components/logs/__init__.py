"""Ray's log files in a log store: a collector beside Ray in each pod sends them."""
