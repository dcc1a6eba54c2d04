"""Policies: rules about Ray on Kubernetes, for Pulumi's previews and for plain YAML.

The package imports no component: it judges the objects of any Pulumi program.
"""
