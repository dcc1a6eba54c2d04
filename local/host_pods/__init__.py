"""Runs the programs of Deployments on the host, as a kubelet would; the nodes are only simulated.

If a Deployment has a known image, the program of the same version is started with the arguments, environment and files
of its container and a token of its ServiceAccount: nothing more, so a missing permission fails as it would on a real
cluster. The program is restarted when it ends, as a container is, and when the Deployment changes; it is stopped when
the Deployment is deleted or scaled to zero.

The API server reaches their servers, such as webhooks, by their Services (`egress`).

It does not run more than one replica and no probes. Files are not updated after the program has started.
"""
