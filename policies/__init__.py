"""Policies: rules about Ray on Kubernetes, for Pulumi's previews and for plain YAML.

Knows no component: it judges what any program makes, this one's or another's.
"""
