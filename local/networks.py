"""The networks of a rehearsal."""

import ipaddress

SERVICE_NETWORK = "10.96.0.0/16"
"""Of the addresses that Services get."""

POD_NETWORK = "10.244.0.0/24"
"""Of the box alone, as all of its networks but the cable: every box has the same."""

BOXES_NETWORK = ipaddress.ip_network("198.18.0.0/15")
"""Of boxes. For tests of devices (RFC 2544), so that it is nobody's network. Each box has four addresses of it."""
