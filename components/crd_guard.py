"""The module in which states of earlier releases find the provider of their CrdGuards."""

from .crds.guard import CrdGuardProvider as CrdGuardProvider
