"""Runs the programs of Deployments on the host: what a kubelet would do for them, on nodes that are only simulated.

For each Deployment whose image is known here, the program of the same version is started once the Deployment is
there, with the arguments, environment and files of its container and a token of its ServiceAccount: nothing more, so a
permission that the stack forgot shows as it would on a real cluster. It is restarted when it ends, as a container is,
and when the Deployment changes; it is stopped when the Deployment goes or is scaled to zero.

The API server reaches what they serve, as webhooks, by their Services (`egress`).

It does not run more than one replica or run probes, and files stay as they were when the program started.
"""
