"""The networks of a rehearsal."""

import ipaddress

SERVICE_NETWORK = "10.96.0.0/16"
"""The addresses of Services."""

POD_NETWORK = "10.244.0.0/24"
"""The networks inside a box, all except the cable: every box has the same."""

BOXES_NETWORK = ipaddress.ip_network("198.18.0.0/15")
"""The network between boxes. Reserved for tests of devices (RFC 2544), so that it conflicts with no other. Each box has
four addresses of it."""
