"""The module in which states of earlier releases find the provider of their CrdGuards."""

from components.crds.guard import CrdGuardProvider as CrdGuardProvider
