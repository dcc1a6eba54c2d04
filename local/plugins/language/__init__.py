"""Runs Pulumi programs written in Python if Pulumi's own language host is missing.

The engine starts a language host for a project with `runtime: python`, asks it for the program's packages, and lets it
run the program. This host implements the same protocol (`pulumirpc.LanguageRuntime`) with the stubs of Pulumi's Python
SDK. It deliberately generates no code and attaches no debugger; docs/tools.md lists what is missing.
"""
